"""One step, or many over all cores, from the beginning to the end."""

from typing import NamedTuple

from numba import prange

from placeto.simulation.compiled import Buffers, Compiled
from placeto.simulation.kernel import advance
from placeto.simulation.queues import DEVICE_ROW, PEAK
from placeto.simulation.state import GROUPS, OPS, STEP, State, begin, view
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import njit


@njit(cache=True)
def read(s: State, peak: Ints, group_start: Floats) -> float:  # pragma: no cover
    """Copies what a finished simulation found.

    Args:
        s: at the end of a step.
        peak: (num_devices,) filled with bytes.
        group_start: (num_groups,) filled with seconds; or (0,) where it is not wanted.

    Returns:
        Step time in seconds.
    """
    for device in range(len(peak)):
        row = device * DEVICE_ROW
        peak[device] = s.device_ints[row + PEAK]
    for group in range(len(group_start)):
        group_start[group] = max(s.group_start[group], 0.0)
    step_time: float = s.clock[0]
    return step_time


class Columns(NamedTuple):
    """What simulations of a batch of placements fill in."""

    step_time: Floats  # (batch,) seconds
    peak: Ints  # (batch, num_devices) bytes
    group_start: Floats  # (batch, num_groups) seconds; (batch, 0) where it is not wanted


def run_many(c: Compiled, rows: Ints, many: Ints, states: Buffers, columns: Columns) -> None:
    """Simulates some rows of a batch of placements over all cores.

    One row starts no threads: numba's do not survive a fork, and a process that was forked from one
    which has used them may well have an environment of its own.

    Args:
        c: the compiled problem.
        rows: (n,) which rows.
        many: (batch, num_groups) device of each group.
        states: buffers of the states that share the work.
        columns: filled in these rows.
    """
    record = GROUPS if columns.group_start.shape[1] else STEP
    if len(rows) == 1:
        _run(c, rows, many, states, columns, 0, record)
    else:
        _run_over_cores(c, rows, many, states, columns, record)


def run_apart(c: Compiled, rows: Ints, many: Ints, states: Buffers, columns: Columns) -> None:
    """Simulates some rows as `run_many` does, each in a state of its own, which keeps the schedule.

    Args:
        c: the compiled problem.
        rows: (n,) which rows.
        many: (batch, num_groups) device of each group.
        states: (batch, …) buffers, a state a row; it ends with the starts of ops.
        columns: filled in these rows.
    """
    if len(rows) == 1:
        _run(c, rows, many, states, columns, rows[0], OPS)
    else:
        _run_apart_over_cores(c, rows, many, states, columns)


@njit(cache=True, parallel=True)
def _run_apart_over_cores(
    c: Compiled, rows: Ints, many: Ints, states: Buffers, columns: Columns
) -> None:  # pragma: no cover
    for index in prange(len(rows)):
        _run(c, rows[index : index + 1], many, states, columns, rows[index], OPS)


@njit(cache=True, parallel=True)
def _run_over_cores(
    c: Compiled, rows: Ints, many: Ints, states: Buffers, columns: Columns, record: int
) -> None:  # pragma: no cover
    count = min(len(states[0]), len(rows))
    for state in prange(count):
        mine = rows[state * len(rows) // count : (state + 1) * len(rows) // count]
        _run(c, mine, many, states, columns, state, record)


@njit(cache=True)
def _run(
    c: Compiled,
    rows: Ints,
    many: Ints,
    states: Buffers,
    columns: Columns,
    state: int,
    record: int,
) -> None:  # pragma: no cover
    """Simulates rows one after the other, with the buffers of one state."""
    ints, longs, reals = states
    s = view(c, ints[state], longs[state], reals[state])
    for row in rows:
        begin(c, many[row], s)
        advance(c, s, 0, record)
        columns.step_time[row] = read(s, columns.peak[row], columns.group_start[row])
