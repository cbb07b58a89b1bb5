"""Drawing what is the same on every machine and for every version of Python and numpy."""

import random
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


def drawn(choices: Sequence[Choice], rng: random.Random) -> Choice:
    """One of some choices, each as likely.

    Of Python's generator only the floats are promised to stay the same; whatever is drawn here is
    drawn from these.
    """
    return choices[int(rng.random() * len(choices))]


def shuffled(items: Sequence[Choice], rng: random.Random) -> list[Choice]:
    """The items in a random order."""
    keys = [rng.random() for _ in items]
    return [items[position] for position in sorted(range(len(items)), key=keys.__getitem__)]
