"""Six models of PyTorch's, none of which is downloaded, and where the middle layer of each is."""

import runpy

import torch
from torch import Tensor, nn

from benchmarks.output import DOCS

# The module that a split by the number of layers begins its second half with.
MIDDLE = {
    "gpt": "blocks.3", "resnet50": "blocks.8", "encoder_decoder": "decoder.0", "vgg16": "conv8",
    "widening_mlp": "layer4", "experts": "blocks.3",
}  # fmt: skip
UNEVEN = ("gpt", "encoder_decoder", "vgg16", "widening_mlp", "experts")


make_gpt = runpy.run_path(str(DOCS / "examples" / "gpt.py"))["make"]


class Bottleneck(nn.Module):
    """Three convolutions beside a residual connection (He et al. 2016)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width),
        )  # fmt: skip
        self.beside: nn.Module = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            projected = nn.Conv2d(inputs, 4 * width, 1, stride, bias=False)
            self.beside = nn.Sequential(projected, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""
        return torch.relu(self.body(x) + self.beside(x))


class ResNet50(nn.Module):
    """Sixteen bottlenecks (He et al. 2016)."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        blocks, inputs = [], 64
        for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            for number in range(count):
                stride = 2 if stage > 0 and number == 0 else 1
                blocks.append(Bottleneck(inputs, width, stride))
                inputs = 4 * width
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 3, side, side) to (batch, classes)."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(x.mean((2, 3)))
        return scores


class EncoderDecoder(nn.Module):
    """Layers over a long text, and as many over a few queries of it, each with a word to find."""

    def __init__(self, words: int, width: int, layers: int, queries: int) -> None:
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True}
        self.words = nn.Embedding(words, width)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, **options) for _ in range(layers)
        )
        self.queries = nn.Parameter(0.1 * torch.randn(queries, width))
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(width, 4, 4 * width, **options) for _ in range(layers)
        )
        self.head = nn.Linear(width, words)

    def forward(self, text: Tensor) -> Tensor:
        """(batch, length) words to (batch, queries, words) scores."""
        memory = self.words(text)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.queries.repeat(len(text), 1, 1)  # what is sent has to be contiguous
        for layer in self.decoder:
            x = layer(x, memory)
        scores: Tensor = self.head(x)
        return scores


class Experts(nn.Module):
    """Experts, each a perceptron, weighed by a gate (Jacobs et al. 1991): all of them compute."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
            for _ in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(batch, width) to the same."""
        weights = self.gate(x).softmax(-1)
        for number, expert in enumerate(self.experts):
            x = x + weights[:, number : number + 1] * expert(x)
        return x


class Mixture(nn.Module):
    """Six layers of ever more experts."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.into = nn.Linear(256, width)
        self.blocks = nn.ModuleList(Experts(width, count) for count in (1, 1, 2, 3, 4, 6))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 256) to (batch, classes)."""
        x = self.into(x)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(x)
        return scores


def gpt(
    batch: int = 32, words: int = 8000, length: int = 64, width: int = 256, layers: int = 6
) -> tuple[nn.Module, Tensor]:
    """That of the documentation, with a vocabulary that weighs as much as the blocks."""
    made: tuple[nn.Module, Tensor] = make_gpt(batch, words, length, width, layers)
    return made


def resnet50(batch: int = 64, side: int = 64) -> tuple[nn.Module, Tensor]:
    """Images of 64 x 64."""
    return ResNet50(1000), torch.randn(batch, 3, side, side)


def encoder_decoder(
    batch: int = 32, length: int = 128, width: int = 256
) -> tuple[nn.Module, Tensor]:
    """Four layers each; 16 words of 8,000 are found."""
    model = EncoderDecoder(8000, width, 4, 16)
    return model, torch.arange(batch * length).reshape(batch, length) % 8000


def vgg16(batch: int = 64, side: int = 64) -> tuple[nn.Module, Tensor]:
    """Thirteen convolutions and three layers more (Simonyan & Zisserman 2015)."""
    layers: dict[str, nn.Module] = {}
    inputs, number = 3, 0
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers[f"conv{number}"] = nn.Conv2d(inputs, width, 3, padding=1)
            layers[f"relu{number}"] = nn.ReLU()
            inputs, number = width, number + 1
        layers[f"pool{number}"] = nn.MaxPool2d(2)
    layers["flat"] = nn.Flatten()
    inputs = 512 * (side // 32) ** 2
    for number, width in enumerate((4096, 4096, 1000)):
        layers[f"dense{number}"] = nn.Linear(inputs, width)
        if number < 2:
            layers[f"dense_relu{number}"] = nn.ReLU()
        inputs = width
    model = nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
    return model, torch.randn(batch, 3, side, side)


def widening_mlp(batch: int = 1024) -> tuple[nn.Module, Tensor]:
    """Eight layers, each twice as wide as the one before, up to 2,048."""
    widths = (32, 64, 128, 256, 512, 1024, 2048, 2048, 1000)
    model = nn.Sequential()
    for number, width in enumerate(widths[1:]):
        model.add_module(f"layer{number}", nn.Linear(widths[number], width))
        if number < len(widths) - 2:
            model.add_module(f"relu{number}", nn.ReLU())
    return model, torch.randn(batch, widths[0])


def experts(batch: int = 1024) -> tuple[nn.Module, Tensor]:
    """Layers of one, one, two, three, four and six experts."""
    return Mixture(512, 1000), torch.randn(batch, 256)


NETS = {
    "gpt": gpt, "resnet50": resnet50, "encoder_decoder": encoder_decoder, "vgg16": vgg16,
    "widening_mlp": widening_mlp, "experts": experts,
}  # fmt: skip
