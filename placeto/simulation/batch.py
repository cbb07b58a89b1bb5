"""A batch of placements that change one group at a time, with what an evaluator says of each."""

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.evaluator import Evaluator
from placeto.simulation.simulate import Outcomes, simulate_many
from placeto.support.arrays import Ints


class EvaluatedBatch:
    """Placements of one problem and their outcomes, kept up to date.

    Rows of the batch are independent. The arrays are the batch's own: they change with it, so
    what has to stay is copied by the caller.

    Args:
        problem: what is placed.
        batch: how many placements.
        evaluate: the evaluator.

    Attributes:
        devices: (batch, num_groups) the present placements.
        outcomes: what the evaluator said of each.
    """

    def __init__(
        self, problem: PlacementProblem, batch: int, evaluate: Evaluator = simulate_many
    ) -> None:
        self.problem = problem
        self.devices: Ints = np.zeros((batch, problem.num_groups), dtype=np.int64)
        self.outcomes = Outcomes(
            step_time=np.zeros(batch),
            peak_memory=np.zeros((batch, problem.num_devices), dtype=np.int64),
            group_start=np.zeros((batch, problem.num_groups)),
            feasible=np.zeros(batch, dtype=bool),
        )
        self._evaluate = evaluate

    def place(self, rows: Ints, many: Ints) -> None:
        """Gives some rows other placements.

        Args:
            rows: (n,) which, each at most once.
            many: (n, num_groups) their devices.
        """
        # An evaluator may raise: then the placements are those that it has evaluated.
        found = self._evaluate(self.problem, np.array(many, dtype=np.int64))
        self.devices[rows] = many
        for mine, theirs in (
            (self.outcomes.step_time, found.step_time),
            (self.outcomes.peak_memory, found.peak_memory),
            (self.outcomes.group_start, found.group_start),
            (self.outcomes.feasible, found.feasible),
        ):
            mine[rows] = theirs

    def move(self, rows: Ints, groups: Ints, devices: Ints) -> Ints:
        """Gives one group a device in some rows.

        Args:
            rows: (n,) which, each at most once.
            groups: (n,) the group that moves in each.
            devices: (n,) its device.

        Returns:
            The rows whose placement changed; the others were not evaluated again.
        """
        moved = self.devices[rows, groups] != devices
        changed: Ints = rows[moved]
        if len(changed):
            many = self.devices[changed]
            many[np.arange(len(changed)), groups[moved]] = devices[moved]
            self.place(changed, many)
        return changed
