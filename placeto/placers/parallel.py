"""Many searches at once, by Ray: on the cores of this machine, or of a cluster."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numba

from placeto.placement import Placement
from placeto.placers.registry import find_placer, place
from placeto.problem import PlacementProblem
from placeto.support.crew import Crew
from placeto.support.errors import NotApplicable, PlacetoError
from placeto.support.progress import Progress, silent
from placeto.support.ray_session import ray_session

Found = Placement | NotApplicable


@dataclass(frozen=True, eq=False)
class Search:
    """What `place` is asked for; see there."""

    problem: PlacementProblem
    method: str = "auto"
    budget_seconds: float = 30.0
    seed: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)


def place_all(
    searches: Sequence[Search],
    workers: int,
    address: str | None = None,
    progress: Progress = silent,
) -> Generator[tuple[int, Found]]:
    """Finds placements, several at a time, each on one core.

    A worker that dies is replaced, and its search begun again. Where there are fewer cores than
    workers, searches share them, and find less in the same seconds.

    The address is that of a Ray cluster, or `auto`; None is this machine. Every search that is
    over, and every worker that dies, is told in a line.

    Yields:
        The number of each search and its placement, as they are over; `NotApplicable` where its
        method does not apply to its problem.

    Raises:
        PlacetoError: no such method or setting; Ray is not installed, or has no room for the
            workers; a search fails.
    """
    if workers < 1:
        raise PlacetoError(f"workers is {workers}, expected a whole number from 1")
    for search in searches:
        find_placer(search.method)
    count = min(workers, len(searches))
    if not count:
        return
    with (
        ray_session(address, count),
        Crew[Search, Found](searcher, [{"num_cpus": 1}] * count, progress) as crew,
    ):
        for number, found in crew.map(searches):
            search = searches[number]
            progress(f"{search.method} on {search.problem.graph.name} is over")
            if not isinstance(found, NotApplicable):
                found = replace(found, problem=search.problem)
            yield number, found


def searcher(number: int) -> "Callable[[Search], Found]":
    """What searches, on the one core that a worker is counted for."""
    numba.set_num_threads(1)
    return _found


def _found(search: Search) -> Found:
    budget, seed = search.budget_seconds, search.seed
    try:
        return place(search.problem, search.method, budget, seed, settings=search.settings)
    except NotApplicable as error:
        return error
