"""Wall-clock times, each taken more than once."""

import time
from collections.abc import Callable

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


def repeated(call: Callable[[], object], at_least: float = 0.15) -> Times:
    """Times of a call that is made again for so many seconds."""
    passes: list[float] = []
    while sum(passes) < at_least:
        passes.append(seconds(call))
    return times(passes)
