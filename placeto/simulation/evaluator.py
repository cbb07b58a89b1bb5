"""Evaluators, what turns placements into step times, and batches of placements with these."""

from collections.abc import Callable

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.simulate import Outcomes, no_outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

Evaluator = Callable[[PlacementProblem, Ints], Outcomes]
"""An evaluator's protocol: called with a problem and (batch, num_groups) devices, it returns
`Outcomes`. `simulate_many` is one. Where an environment is to ask it, step times must be finite,
and no group may start after the step's end."""


def find_evaluator(evaluator: str | Evaluator) -> Evaluator:
    """The evaluator of a name, or the evaluator itself.

    Raises:
        PlacetoError: a name that stands for none.
    """
    if callable(evaluator):
        return evaluator
    if evaluator == "simulate":
        return simulate_many
    raise PlacetoError(
        f"evaluator is {evaluator!r}, expected simulate, or a callable that takes a problem and "
        "(batch, num_groups) devices and returns Outcomes"
    )


class EvaluatedBatch:
    """Placements of one problem and their outcomes, kept up to date.

    Rows of the batch are independent. The arrays are the batch's own: they change with it, so
    what has to stay is copied by the caller.

    Attributes:
        devices: (batch, num_groups) the present placements.
        outcomes: what the evaluator said of each.
    """

    def __init__(
        self, problem: PlacementProblem, batch: int, evaluate: Evaluator = simulate_many
    ) -> None:
        self.problem = problem
        self.devices: Ints = np.zeros((batch, problem.num_groups), dtype=np.int64)
        self.outcomes = no_outcomes(problem, batch)
        self._evaluate = evaluate

    def place(self, rows: Ints, many: Ints) -> None:
        """Gives (n,) rows, each at most once, other placements: (n, num_groups) devices."""
        # An evaluator may raise: then the placements are those that it has evaluated.
        found = self._evaluate(self.problem, np.array(many, dtype=np.int64))
        self.devices[rows] = many
        for name, column in self.outcomes._asdict().items():
            column[rows] = getattr(found, name)

    def move(self, rows: Ints, groups: Ints, devices: Ints) -> Ints:
        """Gives one group a device in each of (n,) rows.

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
