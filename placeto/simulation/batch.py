"""A batch of placements that change one group at a time, with what an evaluator says of each."""

import numpy as np
from numba import get_num_threads

from placeto.graph import Ints
from placeto.problem import PlacementProblem
from placeto.simulation.compiled import Buffers
from placeto.simulation.evaluator import Evaluator
from placeto.simulation.moves import NO_SNAPSHOT, Kept, run_moves, spared
from placeto.simulation.reduction import compiled
from placeto.simulation.run import Columns, run_many
from placeto.simulation.simulate import Outcomes, simulate_many
from placeto.simulation.state import borrowed, buffers, view

# States kept on the way of each simulation, and what share of a simulation a move must leave as it
# is, on average over the groups, to make up for keeping them.
SNAPSHOTS = 4
WORTH = 0.2


class EvaluatedBatch:
    """Placements of one problem and their outcomes, kept up to date.

    Rows of the batch are independent. The arrays are the batch's own: they change with it, so
    what has to stay is copied by the caller. With the simulator as the evaluator, rows are
    simulated over all cores, each in memory of its own, and after a move only from where it could
    first make a difference; the outcomes are those of `simulate_many`, bit by bit.

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
        self._simulations = (
            _Simulations(problem, batch) if evaluate is simulate_many and batch else None
        )

    @property
    def snapshots(self) -> int:
        """How many states are kept on the way of each row's simulation; 0 where it does not pay."""
        kept = self._simulations is not None and self._simulations.keeps_snapshots
        return SNAPSHOTS if kept else 0

    def place(self, rows: Ints, many: Ints) -> None:
        """Gives some rows other placements.

        Args:
            rows: (n,) which, each at most once.
            many: (n, num_groups) their devices.
        """
        if self._simulations is None:
            self._take(rows, many)
        else:
            self.devices[rows] = many
            self._simulations.place(rows, self.devices, self.outcomes)

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
        if len(changed) == 0:
            return changed
        if self._simulations is None:
            many = self.devices[changed]
            many[np.arange(len(changed)), groups[moved]] = devices[moved]
            self._take(changed, many)
        else:
            self._simulations.move(
                changed, groups[moved], devices[moved], self.devices, self.outcomes
            )
        return changed

    def _take(self, rows: Ints, many: Ints) -> None:
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


class _Simulations:
    """Simulates rows of a batch; from snapshots, where keeping these is worth its while."""

    def __init__(self, problem: PlacementProblem, batch: int) -> None:
        self._limit = problem.memory_limit
        self._batch = batch
        self._reduction = compiled(problem)
        self._compiled = self._reduction.compiled
        self._states: Buffers | None = None
        self._decided = False

    @property
    def keeps_snapshots(self) -> bool:
        return self._states is not None

    def place(self, rows: Ints, devices: Ints, outcomes: Outcomes) -> None:
        if self._states is None:
            self._run(rows, devices, outcomes)
        else:
            nothing = np.full(len(rows), -1)
            self._resume(rows, nothing, nothing, devices, outcomes)

    def move(
        self, rows: Ints, groups: Ints, targets: Ints, devices: Ints, outcomes: Outcomes
    ) -> None:
        if self._states is None:
            devices[rows, groups] = targets
            self._run(rows, devices, outcomes)
        else:
            self._resume(rows, groups, targets, devices, outcomes)

    def _run(self, rows: Ints, devices: Ints, outcomes: Outcomes) -> None:
        c = self._compiled
        with borrowed(self._reduction, get_num_threads()) as states:
            run_many(c, rows, devices, states, _columns(outcomes))
            if not self._decided and len(rows):
                self._decided = True
                if spared(view(c, *(part[0] for part in states))) > WORTH:
                    self._keep_snapshots()
        self._judge(rows, outcomes)

    def _keep_snapshots(self) -> None:
        self._states = buffers(self._compiled, self._batch)
        ints, longs, reals = (
            np.empty((self._batch, SNAPSHOTS, part.shape[1]), dtype=part.dtype)
            for part in self._states
        )
        self._snapshots: Buffers = ints, longs, reals
        self._taken = np.full((self._batch, SNAPSHOTS), NO_SNAPSHOT, dtype=np.int32)

    def _resume(
        self, rows: Ints, groups: Ints, targets: Ints, devices: Ints, outcomes: Outcomes
    ) -> None:
        assert self._states is not None
        kept = Kept(*self._states, *self._snapshots, self._taken)
        run_moves(self._compiled, rows, groups, targets, devices, kept, _columns(outcomes))
        self._judge(rows, outcomes)

    def _judge(self, rows: Ints, outcomes: Outcomes) -> None:
        fits = (outcomes.peak_memory[rows] <= self._limit).all(axis=1)
        outcomes.feasible[rows] = fits & np.isfinite(outcomes.step_time[rows])


def _columns(outcomes: Outcomes) -> Columns:
    return Columns(outcomes.step_time, outcomes.peak_memory, outcomes.group_start)
