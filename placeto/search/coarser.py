"""A problem with fewer groups, of several each, and an incumbent that hands on what is found."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from placeto.grouping import coarsen
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.simulation import Outcomes
from placeto.support.arrays import Ints


def coarser(problem: PlacementProblem, max_groups: int) -> tuple[PlacementProblem, Ints]:
    """A problem whose groups are made of a problem's groups.

    Only groups that may be on the same devices are joined, and pins are kept. At most `max_groups`
    are left for each such set of devices.

    Returns:
        The coarser problem, and (num_groups,) the coarser group of each group.
    """
    joined = np.empty(problem.num_groups, dtype=np.int64)
    joined[problem.op_group] = coarsen(problem.graph, problem.op_group, max_groups)
    alike = np.column_stack([joined, problem.allowed])
    group_of = np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)
    pins = {int(group_of[group]): device for group, device in problem.pins.items()}
    grouping = group_of[problem.op_group]
    return PlacementProblem(problem.graph, problem.cluster, grouping, pins=pins), group_of


class CoarseIncumbent(Incumbent):
    """An incumbent of a coarser problem; all that it takes, the finer one is offered as well.

    Its `group_of` is (num_groups of the finer problem,) the coarser group of each group.
    """

    def __init__(
        self, problem: PlacementProblem, finer: Incumbent, group_of: Ints, budget_seconds: float
    ) -> None:
        super().__init__(problem, budget_seconds, finer.progress, finer.clock)
        self.started = finer.started
        self.group_of = group_of
        self._finer, self._told = finer, 0

    def take(self, many: Ints, outcomes: Outcomes) -> None:
        """Keeps the best of placements, and offers all of them to the finer incumbent."""
        self.tell()
        super().take(many, outcomes)
        self._finer.part = self.part
        self._finer.take(np.asarray(many)[:, self.group_of], outcomes)
        self._told = self.evaluations

    def tell(self) -> None:
        """Tells the finer incumbent how many placements were simulated elsewhere."""
        self._finer.evaluations += self.evaluations - self._told
        self._told = self.evaluations


@contextmanager
def coarser_incumbent(
    finer: Incumbent, max_groups: int, share: float = 1.0
) -> Iterator[CoarseIncumbent]:
    """An incumbent of the coarser problem, for a share, from 0 to 1, of what is left of the budget.

    The finer one is offered what it takes, and may be offered others meanwhile.
    """
    problem, group_of = coarser(finer.problem, max_groups)
    now = finer.seconds
    coarse = CoarseIncumbent(problem, finer, group_of, now + share * (finer.budget_seconds - now))
    try:
        yield coarse
    finally:
        coarse.tell()
