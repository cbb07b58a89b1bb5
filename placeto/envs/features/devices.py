"""What the present schedule says of one group on each device, for a batch of episodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import prange

from placeto.envs.features import pairs
from placeto.envs.features.pairs import BINS, GROUP_FEATURES, PAIR_FEATURES, GroupIndex
from placeto.envs.progress import EpisodeProgress
from placeto.problem import PlacementProblem
from placeto.simulation import EvaluatedBatch, Evaluator, Outcomes, simulate_many
from placeto.simulation.reduction import compiled
from placeto.simulation.simulate import run_many
from placeto.simulation.state import Buffers, Compiled, buffers, view
from placeto.support.arrays import Features, Ints
from placeto.support.beside import wait_for
from placeto.support.jit import njit

DEVICE_FEATURES = PAIR_FEATURES + GROUP_FEATURES


def device_feature_names() -> Sequence[str]:
    """(DEVICE_FEATURES,) the columns of `device_features`: of the pair, then of the group alone."""
    of_pair = [column.name.lower() for column in pairs.Pair]
    return [*of_pair, *(f"group_{column.name.lower()}" for column in pairs.Group)]


class ScheduledBatch(EvaluatedBatch):
    """An `EvaluatedBatch` that keeps the simulated schedule of each placement.

    Where the simulator is the evaluator, a placement is simulated once for both. Without the
    `kernel`, which has to be compiled for it, nothing can be placed.
    """

    def __init__(
        self, problem: PlacementProblem, batch: int, evaluate: Evaluator, *, kernel: bool = True
    ) -> None:
        super().__init__(problem, batch, evaluate)
        self._compiled = compiled(problem, kernel=kernel).compiled
        self._wiring = pairs.group_index(problem)
        self._states = buffers(self._compiled, batch)
        # Whether `busy_profile` has been asked about each present schedule, and what it said.
        self._profiled, devices = np.zeros(batch, dtype=bool), problem.num_devices
        self._busy, self._load = np.zeros((batch, devices, BINS + 1)), np.zeros((batch, devices, 2))
        self._apart: Outcomes | None = None
        if evaluate is not simulate_many:
            self._apart = Outcomes._make(map(np.zeros_like, self.outcomes))

    def place(self, rows: Ints, many: Ints) -> None:
        """Gives some rows other placements; see `EvaluatedBatch`."""
        if self._apart is not None:
            super().place(rows, many)
        self.devices[rows] = many
        found = self._simulated
        run_many(self._compiled, rows, self.devices, self._states, found, apart=True)
        self._profiled[rows] = False
        fits = (found.peak_memory[rows] <= self.problem.memory_limit).all(axis=1)
        found.feasible[rows] = fits & np.isfinite(found.step_time[rows])

    @property
    def _simulated(self) -> Outcomes:
        """What the simulator finds: all the outcomes, where it is the evaluator."""
        return self.outcomes if self._apart is None else self._apart

    def write(self, rows: Ints, progress: EpisodeProgress, written: Features) -> None:
        """Writes the device features of some rows.

        Args:
            rows: (n,) which.
            progress: of the episodes that the placements are of.
            written: (batch, num_devices, DEVICE_FEATURES) filled in these rows.
        """
        run = _observe_over_cores if len(rows) > 1 else observe_devices
        kept = (self._profiled, self._busy, self._load)
        told = (progress.current, progress.visited, progress.taken, written)
        wait_for("features")
        run(self._compiled, self._wiring, rows, self._states, self._simulated, kept, told)


@njit(cache=True, parallel=True)
def _observe_over_cores(
    c: Compiled, w: GroupIndex, rows: Ints, states: Buffers, found: Outcomes, kept: Any, told: Any
) -> None:
    for index in prange(len(rows)):
        observe_devices(c, w, rows[index : index + 1], states, found, kept, told)


@njit(cache=True)
def observe_devices(
    c: Compiled, w: GroupIndex, rows: Ints, states: Buffers, found: Outcomes, kept: Any, told: Any
) -> None:
    """Writes the device features of some rows, one after the other.

    `kept` is (batch,) whether the next two, of `busy_profile`, are of the present schedules; `told`
    (batch,) current groups, (batch, at least num_groups) which groups were visited, (batch,) steps
    behind, and what is written.
    """
    profiled, busy, load = kept
    current, visited, taken, written = told
    num_groups = len(w.fastest)
    of_group = np.empty(GROUP_FEATURES, np.float32)
    for row in rows:
        s = view(c, states[row])
        seconds = max(found.step_time[row], pairs.TINY)
        if not profiled[row]:
            pairs.busy_profile(c, w, s, seconds, busy[row], load[row])
            profiled[row] = True
        pairs.observe(
            c, w, s, seconds, found.peak_memory[row], busy[row], load[row], current[row],
            visited[row, :num_groups], taken[row] >= num_groups, written[row], of_group,
        )  # fmt: skip
        for device in range(written.shape[1]):
            for feature in range(GROUP_FEATURES):
                written[row, device, PAIR_FEATURES + feature] = of_group[feature]
