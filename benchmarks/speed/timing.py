"""Wall-clock times, each taken more than once."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Times(NamedTuple):
    """Seconds of one thing: at its fastest, at the median, and how often it was done."""

    fastest: float
    median: float
    passes: int


def times(passes: ArrayLike) -> Times:
    """Sums up repeated measurements.

    Args:
        passes: (passes,) seconds, or (passes, n) of n things one after the other. The fastest and
            the median pass of each thing count, and of these the mean over the things.
    """
    table = np.asarray(passes, dtype=np.float64)
    table = table.reshape(len(table), -1)
    fastest, median = table.min(axis=0).mean(), np.median(table, axis=0).mean()
    return Times(float(fastest), float(median), len(table))


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def in_turn(
    calls: Mapping[str, Callable[[], object]], rounds: int, at_least: float = 0.05
) -> dict[str, Times]:
    """Times of calls that take turns, so that what disturbs the machine disturbs all of them.

    Args:
        calls: by name.
        rounds: how many turns each has.
        at_least: how long a turn is, in seconds: a short call is repeated in it.
    """
    passes: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            left = at_least
            while left > 0:
                passes[name].append(seconds(call))
                left -= passes[name][-1]
    return {name: times(each) for name, each in passes.items()}


def documents(table: dict[str, Times]) -> dict[str, Any]:
    """Times as JSON."""
    return {name: each._asdict() for name, each in table.items()}
