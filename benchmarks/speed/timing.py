"""Wall-clock times, each taken more than once."""

import time
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

Times = dict[str, float]


def times(passes: ArrayLike) -> Times:
    """Sums up repeated measurements.

    Args:
        passes: (passes,) seconds, or (passes, n) of n things one after the other. The fastest and
            the median pass of each thing count, and of these the mean over the things.
    """
    table = np.asarray(passes, dtype=np.float64)
    table = table.reshape(len(table), -1)
    fastest, median = table.min(axis=0).mean(), np.median(table, axis=0).mean()
    return {"fastest": float(fastest), "median": float(median), "passes": len(table)}


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def in_turn(takes: Mapping[str, Callable[[], ArrayLike]], rounds: int) -> dict[str, Times]:
    """Times of what takes turns, so that what disturbs the machine disturbs all of it.

    Args:
        takes: name -> function that does it once and returns seconds, as a row of `times`.
        rounds: how many turns each has.
    """
    passes: dict[str, list[ArrayLike]] = {name: [] for name in takes}
    for _ in range(rounds):
        for name, take in takes.items():
            passes[name].append(take())
    return {name: times(each) for name, each in passes.items()}


def repeated(call: Callable[[], object], at_least: float = 0.15) -> Times:
    """Times of a call that is made again for so many seconds."""
    passes: list[float] = []
    while sum(passes) < at_least:
        passes.append(seconds(call))
    return times(passes)
