"""Placements of a batch of episodes, with their simulated schedules beside what was evaluated."""

import numpy as np

from placeto.envs.features.devices import Schedules
from placeto.problem import PlacementProblem
from placeto.simulation import EvaluatedBatch, Evaluator, Outcomes, simulate_many
from placeto.support.arrays import Bools, Features, Ints


class ScheduledBatch(EvaluatedBatch):
    """An `EvaluatedBatch` that keeps the simulated schedule of each placement.

    Where the simulator is the evaluator, a placement is simulated once for both.
    """

    def __init__(self, problem: PlacementProblem, batch: int, evaluate: Evaluator) -> None:
        super().__init__(problem, batch, evaluate)
        self._schedules = Schedules(problem, batch)
        self._simulates = evaluate is simulate_many
        self._simulated = self.outcomes
        if not self._simulates:
            self._simulated = Outcomes._make(map(np.zeros_like, self.outcomes))

    def place(self, rows: Ints, many: Ints) -> None:
        """Gives some rows other placements; see `EvaluatedBatch`."""
        if not self._simulates:
            super().place(rows, many)
        self.devices[rows] = many
        self._schedules.simulate(rows, self.devices, self._simulated)
        if self._simulates:
            fits = (self.outcomes.peak_memory[rows] <= self.problem.memory_limit).all(axis=1)
            self.outcomes.feasible[rows] = fits & np.isfinite(self.outcomes.step_time[rows])

    def write(
        self, rows: Ints, current: Ints, visited: Bools, taken: Ints, written: Features
    ) -> None:
        """Writes the device features of some rows; see `Schedules`."""
        self._schedules.write(rows, self._simulated, current, visited, taken, written)
