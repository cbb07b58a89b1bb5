"""Every heuristic by its name: functions from a problem to placements, in one go."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placeto.heuristics.baechi import filled_in_order, small_communication_times
from placeto.heuristics.earliest_start import earliest_start
from placeto.heuristics.etf import earliest_finish
from placeto.heuristics.heft import heterogeneous_earliest_finish
from placeto.heuristics.initial import expert_placement, random_placement, single_devices
from placeto.heuristics.metis import partitioned
from placeto.heuristics.scotch import mapped_everywhere, mapped_without_cpus
from placeto.heuristics.stages import balanced_stages
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable
from placeto.support.progress import Progress

RANDOM_DRAWS = 100
CELLS_AT_ONCE = 2**22  # of a batch of placements, which is to be small beside the problem

Placements = Callable[[PlacementProblem, np.random.Generator, float, Progress], Iterator[Ints]]
"""Of a problem, with random numbers, about so many seconds, and who is told what happens: batches,
(n, num_groups) each, of placements."""


@dataclass(frozen=True)
class Heuristic:
    """An entry of the table.

    Attributes:
        summary: one line for `placeto list`.
        placements: makes them; the next batch is only asked for while there is time.
        repaired: whether what does not fit in memory is repaired; else it is what it is.
    """

    summary: str
    placements: Placements
    repaired: bool = True


def _one(function: Callable[[PlacementProblem], Ints]) -> Placements:
    return lambda problem, *_: iter([np.atleast_2d(function(problem))])


def _drawn(function: Callable[[PlacementProblem, np.random.Generator], Ints]) -> Placements:
    return lambda problem, rng, *_: iter([function(problem, rng)[None]])


def _cpus(problem: PlacementProblem, *_: object) -> Iterator[Ints]:
    cpus = np.flatnonzero([device.kind == "cpu" for device in problem.cluster.devices])
    if not len(cpus):
        raise NotApplicable(
            f"cluster {problem.cluster.name!r} has no device of kind cpu; method cpu needs one"
        )
    yield single_devices(problem)[cpus]


def _random(problem: PlacementProblem, rng: np.random.Generator, *_: object) -> Iterator[Ints]:
    together = max(1, CELLS_AT_ONCE // problem.num_groups)
    for drawn in range(0, RANDOM_DRAWS, together):
        count = min(together, RANDOM_DRAWS - drawn)
        yield np.stack([random_placement(problem, rng) for _ in range(count)])


def _heft(problem: PlacementProblem, *_: object) -> Iterator[Ints]:
    for queues in (False, True):
        yield heterogeneous_earliest_finish(problem, queues=queues).devices[None]


def _m_etf(problem: PlacementProblem, *_: object) -> Iterator[Ints]:
    yield earliest_start(problem).devices[None]


def _m_sct(problem: PlacementProblem, _: object, seconds: float, say: Progress) -> Iterator[Ints]:
    yield small_communication_times(problem, seconds, say)[None]


_EXPERT = "blocks for vision models, layers for sequence models"
_MINCUT = "Scotch's static mapping onto all but the CPUs"
_STAGES = "contiguous layers, balanced by dynamic programming (PipeDream)"
HEURISTICS = {
    "single": Heuristic("the best single device", _one(single_devices), repaired=False),
    "cpu": Heuristic("the best device of kind cpu", _cpus, repaired=False),
    "random": Heuristic("the best of 100 random placements", _random, repaired=False),
    "expert": Heuristic(_EXPERT, _one(expert_placement), repaired=False),
    "stages": Heuristic(_STAGES, lambda problem, *_: balanced_stages(problem)),
    "scotch": Heuristic("Scotch's static mapping onto all devices", _drawn(mapped_everywhere)),
    "mincut": Heuristic(_MINCUT, _drawn(mapped_without_cpus)),
    "metis": Heuristic("partitioning by METIS, a part for each device", _drawn(partitioned)),
    "etf": Heuristic("earliest finish under memory limits", _one(earliest_finish)),
    "heft": Heuristic("earliest finish by upward rank (Topcuoglu et al. 2002)", _heft),
    "m-topo": Heuristic("devices filled in topological order (Baechi)", _one(filled_in_order)),
    "m-etf": Heuristic("the group that can start first, again and again (Baechi)", _m_etf),
    "m-sct": Heuristic("m-ETF that waits for favourite children (Baechi)", _m_sct),
}
