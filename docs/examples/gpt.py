"""A small GPT (Radford et al. 2019) whose large vocabulary makes its last layer the heaviest."""

import torch
from torch import nn


class Block(nn.Module):
    """Causal attention and a perceptron, each beside a residual connection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        """(batch, length, width) to the same."""
        parts = self.mixed(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Words and places, blocks, and a score for each word of the vocabulary."""

    def __init__(self, words, length, width, heads, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, text):
        """(batch, length) words to (batch, length, words) scores."""
        x = self.words(text) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make(batch: int = 16, words: int = 8000, length: int = 64, width: int = 256, layers: int = 6):
    """The model, and a batch of texts."""
    model = GPT(words, length, width, 4, layers)
    return model, torch.arange(batch * length).reshape(batch, length) % words


def targets(text):
    """(batch, length) what the scores are to tell: the words."""
    return text


def loss(scores, text):
    """The mean cross-entropy of the words."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), text.flatten())
