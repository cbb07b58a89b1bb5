"""Small PyTorch modules that the tests name as `tests.extraction.pytorch.models:function`."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


def mlp(batch: int = 8) -> tuple[nn.Module, Tensor]:
    """Two layers, 4 -> 6 -> 3; everything can be worked out by hand."""
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.randn(batch, 4)


class Convolutions(nn.Module):
    """Convolution, batch norm, pooling, and functions between modules."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, groups=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, groups=8)
        self.out = nn.Linear(8 * 1 * 1, 5)

    def forward(self, image: Tensor) -> Tensor:
        hidden = torch.relu(self.norm(self.conv(image)))
        hidden = self.depthwise(torch.max_pool2d(hidden, 2))
        return self.out(hidden.flatten(1))


def convolutions(batch: int = 2) -> tuple[nn.Module, Tensor]:
    return Convolutions(), torch.randn(batch, 3, 8, 8)


class Block(nn.Module):
    """A transformer's block: its residual connections keep it whole."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        hidden = self.norm1(words)
        hidden = self.attention(hidden, hidden, hidden, attn_mask=mask, need_weights=False)[0]
        words = words + hidden
        return words + self.mlp(self.norm2(words))


class Language(nn.Module):
    """Embeddings, blocks, and a head that shares the embedding's weight if it is tied."""

    mask: Tensor

    def __init__(self, layers: int, tied: bool, width: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(20, width)
        self.places = nn.Embedding(6, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 20, bias=False)
        if tied:
            self.head.weight = self.words.weight
        self.unused = nn.Linear(2, 2)
        self.register_buffer("mask", torch.triu(torch.full((6, 6), float("-inf")), 1))

    def forward(self, text: Tensor) -> Tensor:
        hidden = self.words(text) + self.places(torch.arange(text.shape[1], device=text.device))
        for block in self.blocks:
            hidden = block(hidden, self.mask)
        scores: Tensor = self.head(self.norm(hidden))
        return scores


def language(batch: int = 2, layers: int = 2, tied: bool = False) -> tuple[nn.Module, Tensor]:
    return Language(layers, tied), torch.zeros(batch, 6, dtype=torch.int64)


class WithLoss(nn.Module):
    """A module that returns its own loss beside what it is of, and takes keywords."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        scores = self.layer(inputs)
        return {"loss": nn.functional.cross_entropy(scores, labels), "scores": scores}


def with_loss() -> tuple[nn.Module, dict[str, Tensor]]:
    return WithLoss(), {"inputs": torch.randn(8, 4), "labels": torch.zeros(8, dtype=torch.int64)}


def drops() -> tuple[nn.Module, Tensor]:
    """Its rates are read off a tensor, as those of stochastic depth are."""
    rates = [rate.item() for rate in torch.linspace(0, 0.1, 2)]
    return nn.Sequential(*(nn.Dropout(rate) for rate in rates), nn.Linear(4, 3)), torch.randn(8, 4)


def reads_an_array() -> tuple[nn.Module, Tensor]:
    layer = nn.Linear(4, 3)
    layer.weight.detach().numpy()
    return layer, torch.randn(8, 4)


def reads_where() -> tuple[nn.Module, Tensor]:
    torch.nonzero(torch.ones(3))
    return nn.Linear(4, 3), torch.randn(8, 4)


class LayerDrop(nn.Module):
    """Leaves a layer out of a training step now and then, as speech and translation models do."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if not (self.training and torch.rand([]) < self.rate):
                x = layer(x)
        return x


def layer_drop(rate: float = 0.1) -> tuple[nn.Module, Tensor]:
    return LayerDrop(rate), torch.randn(8, 4)


def on_meta(tied: bool = False) -> tuple[nn.Module, Tensor]:
    with torch.device("meta"):
        module, inputs = language(layers=1, tied=tied)
    return module, torch.zeros_like(inputs, device="cpu")


class Recurrent(nn.Module):
    """An LSTM of 5 inputs and 3 states."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(5, 3, batch_first=True)

    def forward(self, words: Tensor) -> Tensor:
        hidden: Tensor = self.layer(words)[0]
        return hidden


def recurrent() -> tuple[nn.Module, Tensor]:
    return Recurrent(), torch.randn(2, 6, 5)


class Vectors(nn.Module):
    """A matrix and a vector; the model has no module inside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(7, 5))
        self.register_buffer("ones", torch.ones(7))

    def forward(self, vector: Tensor) -> Tensor:
        return (self.weight @ (2 * vector) + torch.arange(7)) @ self.ones


def vectors() -> tuple[nn.Module, Tensor]:
    return Vectors(), torch.randn(5)


class Masked(nn.Module):
    """A buffer between two layers."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.register_buffer("mask", torch.ones(4))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden: Tensor = self.second(self.first(inputs) * self.mask)
        return hidden


class Scaled(nn.Module):
    """Buffers of the model itself, each read by a module of its own."""

    before: Tensor
    after: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.masked = Masked()
        self.middle = nn.Linear(4, 4)
        self.out = nn.Linear(4, 3)
        self.register_buffer("before", torch.ones(4))
        self.register_buffer("after", torch.ones(3))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.middle(self.masked(inputs * self.before))
        scores: Tensor = self.out(hidden) * self.after
        return scores


def scaled() -> tuple[nn.Module, Tensor]:
    return Scaled(), torch.randn(8, 4)


class Broken(nn.Module):
    """It has a mistake."""

    def forward(self, inputs: Tensor) -> Any:
        return self.nothing(inputs)


def broken() -> tuple[nn.Module, Tensor]:
    return Broken(), torch.randn(8, 4)


def shaped(widths: tuple[int, int] = (4, 3)) -> tuple[nn.Module, Tensor]:
    return nn.Linear(*widths), torch.randn(8, 4)


def flat() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), torch.randn(8, 4)


def sparse() -> tuple[nn.Module, Tensor]:
    return nn.Embedding(9, 4, sparse=True), torch.zeros(8, dtype=torch.int64)


def taken(inputs: int = 4, optimizer: Any = None) -> tuple[nn.Module, Tensor]:
    return nn.Linear(inputs, 3), torch.randn(8, inputs)


def half() -> tuple[nn.Module, Tensor]:
    return nn.Linear(4, 3, dtype=torch.bfloat16), torch.randn(8, 4, dtype=torch.bfloat16)


def large() -> tuple[nn.Module, Tensor]:
    """Forty GB of weights."""
    return nn.Sequential(*(nn.Linear(31623, 31623) for _ in range(10))), torch.randn(8, 31623)


def alone() -> nn.Module:
    return nn.Linear(4, 3)


class Branching(nn.Module):
    """What it computes depends on a value."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs) if inputs.sum() > 0 else inputs


class Selecting(nn.Module):
    """As many rows as are positive."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layer(x)[x.sum(1) > 0]
        return scores


def selecting() -> tuple[nn.Module, Tensor]:
    return Selecting(), torch.randn(8, 4)


def branching() -> tuple[nn.Module, Tensor]:
    return Branching(), torch.randn(8, 4)


def number() -> Any:
    return 3


def counting() -> tuple[nn.Module, Tensor]:
    return nn.Embedding(3, 2).requires_grad_(False), torch.zeros(4, dtype=torch.int64)


def bag() -> tuple[nn.Module, Tensor]:
    return nn.EmbeddingBag(1000, 16), torch.zeros((4, 3), dtype=torch.int64)


class Offset(nn.Module):
    """Its loss is a sum, one term of which is a parameter by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, value: Tensor) -> Tensor:
        return self.linear(value).mean() + self.bias


def offset() -> tuple[nn.Module, Tensor]:
    return Offset(), torch.randn(8, 4)


class Named(nn.Module):
    """A parameter is called as the op is that reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(9, 4))

    def forward(self, words: Tensor) -> Tensor:
        return nn.functional.embedding(words, self.embedding)


def named() -> tuple[nn.Module, Tensor]:
    return Named(), torch.zeros(8, dtype=torch.int64)


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, value: Tensor) -> Tensor:
        made = self.linear(value)
        return torch.cond(made.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (made,))


def branch() -> tuple[nn.Module, Tensor]:
    return Branch(), torch.randn(8, 4)


class Attending(nn.Module):
    """Attention of what it is given, under a mask that it is given, too."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        made: Tensor = self.attention(words, words, words, attn_mask=mask, need_weights=False)[0]
        return made


def masked() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Attending(), (torch.randn(8, 3, 4), torch.zeros(3, 3))


class Heads(nn.Module):
    """Layers of attention whose keys and values have fewer heads than its queries."""

    def __init__(self, layers: int, heads: int, kept: int, width: int) -> None:
        super().__init__()
        self.sizes = (heads * width, kept * width, kept * width)
        self.width = width
        self.layers = nn.ModuleList(
            nn.Linear(heads * width, sum(self.sizes), bias=False) for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            parts = layer(x).split(self.sizes, dim=-1)
            q, k, v = (each.unflatten(-1, (-1, self.width)).transpose(1, 2) for each in parts)
            k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for each in (k, v))
            made = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + made.transpose(1, 2).flatten(2)
        return x


def heads(
    batch: int = 4, layers: int = 3, heads: int = 6, kept: int = 2, width: int = 8
) -> tuple[nn.Module, Tensor]:
    return Heads(layers, heads, kept, width), torch.randn(batch, 5, heads * width)


class Numbers(nn.Module):
    """It is given a number."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, factor: Tensor) -> Tensor:
        return factor * self.weight


def numbers() -> tuple[nn.Module, Tensor]:
    return Numbers(), torch.ones(())


class Shifted(nn.Module):
    """It adds to a part of a tensor in place: autograd has ops of which no forward op is left."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, value: Tensor) -> Tensor:
        made: Tensor = self.linear(value) + 0
        made[:, 1] += made[:, 0]
        return made


def shifted() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(Shifted(), nn.Linear(4, 4)), torch.randn(8, 4)


def copied() -> tuple[nn.Module, Tensor]:
    """Its layers are copies of one, as those of `nn.Transformer` are."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(2, 3, 8)


def deep(batch: int = 64) -> tuple[nn.Module, Tensor]:
    """Seven layers of different widths, in a row."""
    widths = (256, 512, 1024, 512, 2048, 256, 1024, 128)
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), torch.randn(batch, widths[0])
