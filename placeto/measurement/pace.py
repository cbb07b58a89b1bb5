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

    def __call__(self) -> float:
        """How many times as long as ever the work takes now, on the slowest core; 1 for no cores.

        This thread runs on each of the cores for a millisecond.
        """
        home, slowest = os.sched_getaffinity(0), 1.0
        for core in self._cores:
            os.sched_setaffinity(0, {core})
            seconds = min(_work() for _ in range(_REPEATS))
            self._least[core] = min(self._least.get(core, inf), seconds)
            slowest = max(slowest, seconds / self._least[core])
        os.sched_setaffinity(0, home)
        return slowest


def calmest(
    run: Callable[[], T],
    pace: Callable[[], float],
    enough: Callable[[list[T]], bool],
    patience_seconds: float,
) -> tuple[list[T], list[float]]:
    """Runs something until there is enough of it that ran while the cores were as fast as ever.

    Which of it counts is chosen by the pace before and after each, never by what came out. Where
    too little is calm, what was disturbed least counts, too.

    Args:
        run: is called over and over.
        pace: see `Pace`.
        enough: whether these results of `run` are.
        patience_seconds: of running on, once there is enough, for the sake of what is calm.

    Returns:
        The results that count, in the order in which they came, and the pace at each: `CALM` at
        most, or more.
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
        paces.append(max(before, after))
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
