"""Moves of ranks: the order of a placed step, made better while every op stays where it is."""

import time
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from placeto.objective import overflow
from placeto.problem import PlacementProblem
from placeto.simulation.reduction import compile_problem
from placeto.simulation.simulate import no_outcomes, run_many, simulate
from placeto.simulation.state import buffers, state_in
from placeto.support.arrays import Floats, Ints

NEAREST, FARTHEST = -3.0, -0.5  # powers of ten of the step time that ops are moved by


class RankMove(IntEnum):
    """What goes sooner or later, of the ops of one device."""

    BLOCK = 0  # one group's in one pass: of a microbatch, forward or backward
    PASS = 1  # all of a pass, or what is left of it from some op on
    TILT = 2  # all within some time: by microbatches, or forward and backward apart


class RankedSteps:
    """Steps of one placement in one order after another; compiled once.

    Attributes:
        evaluations: how many were simulated.
    """

    def __init__(self, problem: PlacementProblem, devices: Ints) -> None:
        any_ranks = np.arange(problem.graph.num_ops)
        problem = replace(problem, grouping=problem.op_group, order=any_ranks)
        self._compiled = compile_problem(problem).compiled
        self._states = buffers(self._compiled, 1)
        self._state = state_in(self._compiled, self._states[0])
        self._outcomes = no_outcomes(problem, 1, group_start=False)
        self._problem, self._devices, self.evaluations = problem, devices[None], 0

    def __call__(self, priority: Floats) -> tuple[tuple[float, float], Floats]:
        """Simulates the step, in which of a device's ready ops the one of lowest priority starts.

        Args:
            priority: (num_ops,) numbers; ops of the same one go first come, first served.

        Returns:
            Bytes over the limits of memory and the step time in seconds; and (num_ops,) seconds
            when each starts.
        """
        ranks = np.unique(priority, return_inverse=True)[1].reshape(-1)
        self._compiled.ranks[:] = ranks
        self._state.waiting_ops["since"] = ranks
        first = np.zeros(1, dtype=np.int64)
        run_many(self._compiled, first, self._devices, self._states, self._outcomes, apart=True)
        self.evaluations += 1
        over = float(overflow(self._problem, self._outcomes.peak_memory[0]))
        return (over, float(self._outcomes.step_time[0])), self._state.op_start.copy()


@dataclass(frozen=True)
class MovedRanks:
    """What moves of ranks have found.

    Attributes:
        order: (num_ops,) ranks.
        evaluations: steps that were simulated.
    """

    order: Ints
    evaluations: int


def move_ranks(
    problem: PlacementProblem,
    devices: Ints,
    seconds: float,
    rng: np.random.Generator,
    max_evaluations: int | None = None,
) -> MovedRanks:
    """Moves the ranks of a placed step for some seconds.

    It begins with when each op starts in the problem's own order, and moves those of some ops on
    one device by some time, as far as a third of the step. What does not make the step slower, or
    take more memory than there is, is kept: a walk over orders that are as good, since most moves
    change nothing.

    Args:
        problem: with the order to begin with.
        devices: (num_groups,) device of each group.
        seconds: to do it in.
        rng: of the moves.
        max_evaluations: steps to simulate at most, of which the first is as it was.
    """
    began, graph = time.monotonic(), problem.graph
    device, group = devices[problem.op_group], problem.op_group
    first = simulate(problem, devices)
    before = np.arange(graph.num_ops) if problem.ranks is None else problem.ranks
    priority = _by_start(first.start, before)
    steps = RankedSteps(problem, devices)
    present, start = steps(priority)
    most = np.inf if max_evaluations is None else max_evaluations
    while time.monotonic() - began < seconds and steps.evaluations < most:
        op, length = int(rng.integers(graph.num_ops)), present[1]
        far = length * 10 ** rng.uniform(NEAREST, FARTHEST)
        ops, shift = device == device[op], rng.normal() * far
        kind, proposed = rng.integers(len(RankMove)), priority.copy()
        if kind == RankMove.TILT:
            ops &= (start >= start[op]) & (start < start[op] + far)
            by = graph.microbatch if rng.random() < 0.5 else graph.phase
            proposed[ops] += by[ops] * shift
        else:
            ops &= (graph.microbatch == graph.microbatch[op]) & (graph.phase == graph.phase[op])
            if kind == RankMove.BLOCK:
                ops &= group == group[op]
            elif rng.random() < 0.5:
                ops &= start >= start[op]
            proposed[ops] += shift
        found, started = steps(proposed)
        if found <= present:
            present, priority, start = found, _by_start(started, proposed), started
    order = np.unique(priority, return_inverse=True)[1].reshape(-1)
    return MovedRanks(order, steps.evaluations)


def _by_start(start: Floats, before: Floats | Ints) -> Floats:
    """(num_ops,) when each op starts, a little later where others of that time were before it."""
    turn = np.empty(len(start))
    turn[np.lexsort((before, start))] = np.arange(len(start))
    priority: Floats = start + turn * (start.max() * 1e-9 / len(start))
    return priority
