"""How fast cores are at the moment, and which steps count for it.

A core is slower while others use what it shares with them: 1.3 to 1.4 times, for tenths of a second
or for minutes, where the other thread of a physical core is another virtual machine's. No count of
processor time tells of it.
"""

import os
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import TypeVar

# From here on a core is disturbed.
CALM = 1.2
_LOOPS = 4_000
_REPEATS = 4
_MOST_CORES = 8

T = TypeVar("T")


class Pace:
    """Times the same work on cores again and again.

    Args:
        cores: numbers of cores; of many, the first are looked at.
        least: core -> seconds that the work took there at least, until now; brought up to date.
    """

    def __init__(self, cores: Sequence[int], least: dict[int, float]) -> None:
        self._cores = tuple(cores[:_MOST_CORES])
        self._least = least

    def __call__(self) -> list[float]:
        """How many times as long as ever the work takes now, on each core.

        This thread runs on each of the cores for a millisecond.
        """
        home, found = os.sched_getaffinity(0), []
        for core in self._cores:
            os.sched_setaffinity(0, {core})
            seconds = min(_work() for _ in range(_REPEATS))
            self._least[core] = min(self._least.get(core, inf), seconds)
            found.append(seconds / self._least[core])
        os.sched_setaffinity(0, home)
        return found


def slowest(paces: Sequence[float]) -> float:
    """Of the paces of all cores, before and after a step: how much slower than ever one was."""
    return max(paces, default=1.0)


def unevenness(paces: Sequence[float]) -> float:
    """Likewise: how much slower one was than another, or than before."""
    return max(paces, default=1.0) / min(paces, default=1.0)


def calmest(
    run: Callable[[], T],
    pace: Callable[[], list[float]],
    enough: Callable[[list[T]], bool],
    patience_seconds: float,
    disturbance: Callable[[Sequence[float]], float] = slowest,
) -> tuple[list[T], list[float]]:
    """Runs something until there is enough of it that ran while nothing disturbed the cores.

    Which of it counts is chosen by the pace before and after each, never by what came out. Where
    too little is calm, what was disturbed least counts, too.

    Args:
        run: is called over and over.
        pace: see `Pace`.
        enough: whether these results of `run` are.
        patience_seconds: of running on, once there is enough, for the sake of what is calm.
        disturbance: what the paces before and after amount to; up to `CALM` it is none.

    Returns:
        The results that count, in the order in which they came, and the disturbance at each.
    """
    results: list[T] = []
    paces: list[float] = []
    calm: list[T] = []
    before, until = pace(), inf
    while not enough(calm):
        if until == inf and enough(results):
            until = time.monotonic() + patience_seconds
        if time.monotonic() >= until:
            break
        results.append(run())
        after = pace()
        paces.append(disturbance([*before, *after]))
        if paces[-1] <= CALM:
            calm.append(results[-1])
        before = after
    order = sorted(range(len(results)), key=lambda number: max(paces[number], CALM))
    for count in range(len(order) + 1):
        counted = sorted(order[:count])
        if enough([results[number] for number in counted]):
            break
    return [results[number] for number in counted], [paces[number] for number in counted]


def _work() -> float:
    begin, total = time.perf_counter(), 0
    for number in range(_LOOPS):
        total += number * number
    return time.perf_counter() - begin
