"""When a simulation may be given up: what its step time cannot be below, from halfway."""

import numpy as np
from numba import njit

from placeto.graph import Floats, Ints
from placeto.problem import PlacementProblem
from placeto.simulation.compiled import (
    BUNDLE_ROW,
    BUNDLED,
    CROSSES,
    CROSSING_ROW,
    FIRST_BUNDLE,
    GROUP,
    LOCAL,
    OP_WORDS,
    Compiled,
)
from placeto.simulation.queues import DEVICE_ROW, EARLY_PEAK, FREE, NEXT_TIME, PEAK, RUNNING
from placeto.simulation.reduction import compiled
from placeto.simulation.state import State

NOT_STARTED = -1.0


def paths_after(problem: PlacementProblem) -> Floats:
    """(num_kept,) seconds of the longest path behind each op, each op where it is fastest."""
    reduction = compiled(problem)
    c, kept = reduction.compiled, len(reduction.kept)
    rank = np.full(problem.graph.num_ops, -1)
    rank[reduction.kept] = np.arange(kept)
    order = rank[problem.graph.topological_order]
    after = np.zeros(kept)
    fastest = c.op_seconds.reshape(kept, -1).min(axis=1)
    _longest_after(c, fastest, order[order >= 0], after)
    return after


@njit(cache=True)
def _longest_after(
    c: Compiled, fastest: Floats, order: Ints, after: Floats
) -> None:  # pragma: no cover
    for op in order[::-1]:
        row = 2 * OP_WORDS * op
        ends = row + 2 * OP_WORDS
        longest = 0.0
        for entry in range(c.op_rows[row + LOCAL], c.op_rows[ends + LOCAL]):
            consumer = c.local[entry]
            longest = max(longest, fastest[consumer] + after[consumer])
        first = c.crossing_rows[CROSSING_ROW * c.op_rows[row + CROSSES] + FIRST_BUNDLE]
        last = c.crossing_rows[CROSSING_ROW * c.op_rows[ends + CROSSES] + FIRST_BUNDLE]
        for entry in range(
            c.bundle_rows[BUNDLE_ROW * first + BUNDLED], c.bundle_rows[BUNDLE_ROW * last + BUNDLED]
        ):
            consumer = c.bundled[entry]
            longest = max(longest, fastest[consumer] + after[consumer])
        after[op] = longest


@njit(cache=True)
def least_step_time(
    c: Compiled, s: State, after: Floats, left: Floats
) -> float:  # pragma: no cover
    """Seconds that no end of a simulation is before.

    Every op that has not started starts at the present instant at the earliest, a path of others
    behind it; and a device has to run all of its ops that have not started.

    Args:
        c: the compiled problem.
        s: between two instants, with the starts of ops; those of the others are `NOT_STARTED`.
        after: by `paths_after`.
        left: (num_devices,) overwritten.
    """
    num_kept = len(c.missing)
    num_kinds = len(c.op_seconds) // max(num_kept, 1)
    now = s.clock[0]
    least = now
    left[:] = 0.0
    for op in range(num_kept):
        if s.op_start[op] == NOT_STARTED:
            device = s.device_of[c.op_rows[2 * OP_WORDS * op + GROUP]]
            seconds = c.op_seconds[num_kinds * op + c.device_kind[device]]
            least = max(least, now + seconds + after[op])
            if seconds > 0:
                left[device] += seconds + c.launch_overhead[device]
    for device in range(len(left)):
        row = DEVICE_ROW * device
        op = s.device_ints[row + RUNNING]
        if op >= 0:
            least = max(least, s.device_reals[row + NEXT_TIME] + after[op])
        if left[device] > 0:
            begins = max(now, s.device_reals[row + FREE])
            least = max(least, begins + left[device] - c.launch_overhead[device])
    return least


@njit(cache=True)
def bytes_over(s: State, memory_limit: Ints) -> float:  # pragma: no cover
    """Bytes by which the devices' peaks so far exceed their memory, in all."""
    over = 0.0
    for device in range(len(memory_limit)):
        row = DEVICE_ROW * device
        peak = max(s.device_ints[row + PEAK], s.device_ints[row + EARLY_PEAK])
        over += max(peak - memory_limit[device], 0)
    return over
