"""A small ResNet (He et al. 2016), normalised by groups of channels (Wu & He 2018).

Batch normalisation would be by microbatch in a pipeline, and so another function.
"""

import torch
from torch import nn

CLASSES = 10


class Bottleneck(nn.Module):
    """Three convolutions beside a residual connection."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.GroupNorm(8, width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.GroupNorm(8, width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.GroupNorm(8, outputs),
        )
        nn.init.zeros_(self.body[-1].weight)  # a block begins as the identity (Goyal et al. 2017)
        self.beside = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.beside = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.GroupNorm(8, outputs)
            )

    def forward(self, x):
        """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""
        return torch.relu(self.body(x) + self.beside(x))


class ResNet(nn.Module):
    """A stem, stages of bottlenecks, each twice as wide as the one before, and scores."""

    def __init__(self, width, blocks):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        layers, inputs = [], width
        for stage, count in enumerate(blocks):
            for number in range(count):
                stride = 2 if stage > 0 and number == 0 else 1
                layers.append(Bottleneck(inputs, width << stage, stride))
                inputs = 4 * (width << stage)
        self.blocks = nn.ModuleList(layers)
        self.head = nn.Linear(inputs, CLASSES)

    def forward(self, images):
        """(batch, 3, side, side) to (batch, CLASSES) scores."""
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def make(batch: int = 16, side: int = 32, width: int = 32):
    """The model, and a batch of images."""
    return ResNet(width, (3, 4, 6, 3)), torch.randn(batch, 3, side, side)


def targets(images):
    """(batch,) the class of each image."""
    return torch.arange(len(images)) % CLASSES


def loss(scores, classes):
    """The mean cross-entropy of the images' classes."""
    return nn.functional.cross_entropy(scores, classes)
