"""One step, or many over all cores, from the beginning to the end."""

from numba import njit, prange

from placeto.graph import Floats, Ints
from placeto.simulation.compiled import Compiled, Int32s
from placeto.simulation.kernel import advance
from placeto.simulation.queues import DEVICE_ROW, EARLY_PEAK, PEAK
from placeto.simulation.state import GROUPS, STEP, State, begin, view


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
        peak[device] = max(s.device_ints[row + PEAK], s.device_ints[row + EARLY_PEAK])
    for group in range(len(group_start)):
        group_start[group] = max(s.group_start[group], 0.0)
    step_time: float = s.clock[0]
    return step_time


@njit(cache=True, parallel=True)
def run_many(
    c: Compiled,
    rows: Ints,
    many: Ints,
    ints: Int32s,
    longs: Ints,
    reals: Floats,
    step_time: Floats,
    peak: Ints,
    group_start: Floats,
) -> None:  # pragma: no cover
    """Simulates some rows of a batch of placements over all cores.

    Args:
        c: the compiled problem.
        rows: (n,) which rows.
        many: (batch, num_groups) device of each group.
        ints: (states, …) buffers of the states that share the work.
        longs: likewise.
        reals: likewise.
        step_time: (batch,) filled with seconds.
        peak: (batch, num_devices) filled with bytes.
        group_start: (batch, num_groups) filled with seconds; (batch, 0) where it is not wanted.
    """
    states = min(len(ints), len(rows))
    record = GROUPS if group_start.shape[1] else STEP
    for state in prange(states):
        s = view(c, ints[state], longs[state], reals[state])
        for index in range(state * len(rows) // states, (state + 1) * len(rows) // states):
            row = rows[index]
            begin(c, many[row], s)
            advance(c, s, 0, record)
            step_time[row] = read(s, peak[row], group_start[row])
