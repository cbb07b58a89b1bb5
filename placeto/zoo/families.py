"""Families of graphs that policies are trained and tested on: what is in them, and how it is split.

Nothing here needs TensorFlow: a member is known by the source that it is extracted from.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from placeto.support.errors import PlacetoError
from placeto.zoo.draws import drawn, shuffled

SPLITS = {"train": 20, "validation": 4, "test": 8}
SIZE = sum(SPLITS.values())
SCHEME = "family:"
# Changed where members are to be drawn anew.
_SEED = "placeto families 1"


@dataclass(frozen=True)
class Member:
    """One graph of a family, of those numbered from 0 to `SIZE` - 1.

    Its source is what it is made from, see `extraction.extract`; of a synthetic graph, its
    reference. Its split is one of `SPLITS`.
    """

    family: str
    number: int
    source: str
    split: str

    @property
    def name(self) -> str:
        """The graph's name, and that of its file."""
        return f"{self.family}_{self.number:02d}"

    @property
    def reference(self) -> str:
        """What the member is called as a source."""
        return f"{SCHEME}{self.family}?number={self.number}"


def _cifar10(rng: random.Random) -> str:
    return (
        f"zoo:enas_cnn?seed={drawn(range(10**6), rng)}&cells={drawn(range(6, 13), rng)}"
        f"&filters={drawn((48, 64, 80), rng)}&batch={drawn((64, 80, 96), rng)}"
    )


def _ptb(rng: random.Random) -> str:
    return (
        f"zoo:enas_rnn?seed={drawn(range(10**6), rng)}&nodes={drawn(range(6, 13), rng)}"
        f"&length={drawn(range(15, 36), rng)}&hidden={drawn((640, 800, 1000), rng)}"
        f"&batch={drawn((64, 96, 128), rng)}"
    )


def _nmt(rng: random.Random) -> str:
    layers = drawn(range(1, 5), rng)
    # An unrolled word is about 75 ops and 80 a layer; more than 8,000 ops are slow to search.
    longest = min(30, 8000 // (75 + 80 * layers))
    return (
        f"zoo:nmt?layers={layers}&length={drawn(range(10, longest + 1), rng)}"
        f"&hidden={drawn((512, 768, 1024), rng)}&batch={drawn((64, 128, 192, 256), rng)}"
    )


def _transformer(rng: random.Random) -> str:
    length, words = drawn((32, 64, 96, 128), rng), drawn((3072, 6144, 9216), rng)
    layers, hidden = drawn(range(3, 11), rng), drawn((384, 512, 640, 768), rng)
    return (
        f"zoo:transformer?layers={layers}&hidden={hidden}"
        f"&heads={drawn((4, 8, 16), rng)}&length={length}&batch={words // length}"
        f"&masked={length * 15 // 100}"
    )


def _pipelined(rng: random.Random) -> str:
    parts = drawn((4, 8), rng)
    if drawn((True, False), rng):
        return (
            f"zoo:enas_cnn?seed={drawn(range(10**6), rng)}&cells={drawn(range(3, 6), rng)}"
            f"&filters={drawn((48, 64, 80), rng)}&batch={drawn((64, 96), rng)}&microbatches={parts}"
        )
    length = drawn((32, 64), rng)
    return (
        f"zoo:transformer?layers={drawn(range(2, 7), rng)}&hidden={drawn((384, 512, 640), rng)}"
        f"&heads={drawn((4, 8), rng)}&length={length}&batch={drawn((64, 96, 128), rng)}"
        f"&masked={length * 15 // 100}&microbatches={parts}"
    )


@dataclass(frozen=True)
class Family:
    """Graphs of one make: what they are, in a few words, and what draws a member's source.

    `draw` is None where graphs are made without TensorFlow.
    """

    summary: str
    draw: Callable[[random.Random], str] | None = None


FAMILIES = {
    "cifar10": Family("convolutional networks of cells that ENAS could sample", _cifar10),
    "ptb": Family("language models of recurrent cells that ENAS could sample", _ptb),
    "nmt": Family("translation by LSTM layers with attention, of other sizes", _nmt),
    "transformer": Family("Transformer encoders of other sizes", _transformer),
    "pipelined": Family(
        "smaller networks of cells and Transformers, in four or eight microbatches", _pipelined
    ),
    "layered": Family("made up: layers that read the layer before"),
    "series_parallel": Family("made up: an edge split in series and in parallel"),
    "random": Family("made up: ops that read any of the dozen before"),
}


@cache
def members(family: str) -> tuple[Member, ...]:
    """The graphs of a family by number, the same ones for everyone.

    Raises:
        PlacetoError: an unknown family.
    """
    if family not in FAMILIES:
        raise PlacetoError(f"{SCHEME}{family}: no such family; families: {', '.join(FAMILIES)}")
    draw = FAMILIES[family].draw
    rng = random.Random(f"{_SEED}, {family}")
    splits = shuffled([name for name, count in SPLITS.items() for _ in range(count)], rng)
    sources: list[str] = []
    while len(sources) < SIZE:
        source = draw(rng) if draw else f"{SCHEME}{family}?number={len(sources)}"
        # A graph of the test set that is also one to train on would test nothing.
        if source not in sources:
            sources.append(source)
    return tuple(
        Member(family, number, source, split)
        for number, (source, split) in enumerate(zip(sources, splits, strict=True))
    )


def is_synthetic(family: str) -> bool:
    """Whether a family's graphs are made without TensorFlow, within milliseconds."""
    return FAMILIES[family].draw is None


def parse_family(text: str) -> str:
    """The family that `family:NAME` names.

    Raises:
        PlacetoError: not of that form, an unknown family.
    """
    family = text.removeprefix(SCHEME)
    if "?" in family:
        whole = SCHEME + family.partition("?")[0]
        raise PlacetoError(f"{text}: names one graph; expected a whole family, such as {whole}")
    members(family)
    return family


def parse_member(text: str) -> Member:
    """The graph that `family:NAME?number=N` names.

    Raises:
        PlacetoError: not of that form, an unknown family, no such number.
    """
    family, _, query = text.removeprefix(SCHEME).partition("?")
    graphs = members(family)
    number = query.removeprefix("number=")
    if number == query or not (number.isascii() and number.isdigit()):
        raise PlacetoError(f"{text}: give {SCHEME}{family}?number=N for one graph of the family")
    if len(number) > len(str(SIZE)) or int(number) >= len(graphs):
        raise PlacetoError(
            f"{text}: {family} has no graph {number}; they are numbered from 0 to {SIZE - 1}"
        )
    return graphs[int(number)]
