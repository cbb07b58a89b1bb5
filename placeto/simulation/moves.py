"""Placements that change one group at a time: what cannot have changed is not simulated again.

The device of a group matters from the instant on at which one of its ops could first be ready or
receive a tensor. Up to there the schedule is the same wherever the group is, but for the memory
that its parameters and constants take. So states are kept on the way, and a simulation after a
move goes on from the last one before that instant.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from placeto.graph import Floats, Ints
from placeto.simulation.compiled import (
    RANK,
    SLOT_ROW,
    SOURCE_GROUP,
    SOURCE_ROW,
    Compiled,
    Int32s,
)
from placeto.simulation.kernel import advance
from placeto.simulation.queues import (
    DEVICE_ROW,
    EARLY_PEAK,
    FIRST_HOLDER,
    HEAD,
    HELD_UNTIL,
    MEMORY,
    PEAK,
    ROOT,
    SOURCE,
    TAIL,
)
from placeto.simulation.run import Columns, read
from placeto.simulation.state import (
    COPY_ROW,
    GROUPS,
    INSTANTS,
    NUM_COPIES,
    NUM_EVENTS,
    NUM_TRANSFERS,
    SEVERAL,
    TRANSFER_ROW,
    State,
    begin,
    set_devices,
    view,
)

NO_SNAPSHOT = np.iinfo(np.int32).max


@njit(cache=True)
def copy_state(s: State, t: State) -> None:  # pragma: no cover
    """Makes state `t` stand where state `s` stands, between two instants."""
    copies, transfers, events = s.counts[NUM_COPIES], s.counts[NUM_TRANSFERS], s.counts[NUM_EVENTS]
    t.counts[:] = s.counts
    t.missing[:] = s.missing
    slots = len(s.slots) - SLOT_ROW * (len(s.bundle_next) - copies)
    t.slots[:slots] = s.slots[:slots]
    t.holder_slot[:] = s.holder_slot
    t.bundle_next[:] = s.bundle_next
    heaped = False
    for queue in range(0, len(s.device_ints), DEVICE_ROW):
        heaped = heaped or s.device_ints[queue + ROOT] >= 0
        waiting = slice(s.device_ints[queue + HEAD], s.device_ints[queue + TAIL])
        t.ready[waiting] = s.ready[waiting]
    if heaped:
        t.ready_links[:] = s.ready_links
    t.device_ints[:] = s.device_ints
    t.channel_queue[:] = s.channel_queue
    t.copies[: copies * COPY_ROW] = s.copies[: copies * COPY_ROW]
    t.transfers[: transfers * TRANSFER_ROW] = s.transfers[: transfers * TRANSFER_ROW]
    t.transfer_links[: transfers * 2] = s.transfer_links[: transfers * 2]
    t.transfer_keys[: transfers * 2] = s.transfer_keys[: transfers * 2]
    t.requested[:transfers] = s.requested[:transfers]
    t.event_codes[:events] = s.event_codes[:events]
    t.event_times[:events] = s.event_times[:events]
    t.touched[:] = s.touched
    t.channel_free[:] = s.channel_free
    t.group_start[:] = s.group_start
    t.clock[:] = s.clock


@njit(cache=True)
def settled(s: State) -> bool:  # pragma: no cover
    """Whether every op that was ready at 0 has started, and an instant after them has passed."""
    for row in range(0, len(s.device_ints), DEVICE_ROW):
        if s.device_ints[row + SOURCE] >= 0 or s.device_reals[row + HELD_UNTIL] > s.clock[0]:
            return False
    return True


@njit(cache=True)
def move_memory(
    c: Compiled, s: State, group: int, device: int, sign: int
) -> None:  # pragma: no cover
    """Adds (or with -1 takes away) a group's parameters and constants to a settled state."""
    early = late = c.group_bytes[group]
    row = device * DEVICE_ROW
    holder = s.device_ints[row + FIRST_HOLDER]
    for source in range(len(c.source_bytes)):
        if c.source_rows[source * SOURCE_ROW + SOURCE_GROUP] == group:
            late += c.source_bytes[source]
            if holder < 0 or c.source_rows[source * SOURCE_ROW + RANK] <= holder:
                early += c.source_bytes[source]
    s.device_ints[row + MEMORY] += sign * late
    s.device_ints[row + PEAK] += sign * late
    s.device_ints[row + EARLY_PEAK] += sign * early


@njit(cache=True)
def has_constants(c: Compiled, group: int) -> bool:  # pragma: no cover
    """Whether constants of a group take memory."""
    for source in range(len(c.source_bytes)):
        if (
            c.source_rows[source * SOURCE_ROW + SOURCE_GROUP] == group
            and c.source_bytes[source] > 0
        ):
            return True
    return False


def spared(s: State) -> float:
    """The share of a finished simulation that a move leaves as it is, the mean over the groups."""
    instants = s.counts[INSTANTS]
    touched = np.where(s.touched < 0, instants, s.touched)
    return float(touched.mean()) / instants


@njit(cache=True)
def resume_from(
    c: Compiled, s: State, taken: Int32s, group: int, old: int, new: int
) -> int:  # pragma: no cover
    """Which snapshot a simulation can go on from after a move; -1 for none."""
    several = False
    for device in (old, new):
        several |= s.device_ints[device * DEVICE_ROW + FIRST_HOLDER] == SEVERAL
    if several and has_constants(c, group):
        return -1
    touched = s.touched[group]
    last = -1
    for number in range(len(taken)):
        if taken[number] != NO_SNAPSHOT and (touched < 0 or taken[number] <= touched):
            last = number
    return last


class Kept(NamedTuple):
    """The states of a batch's rows, and snapshots on the way to each: buffers of both."""

    ints: Int32s  # (batch, …)
    longs: Ints
    reals: Floats
    kept_ints: Int32s  # (batch, snapshots, …)
    kept_longs: Ints
    kept_reals: Floats
    taken: Int32s  # (batch, snapshots) after how many instants each, or `NO_SNAPSHOT`


def run_moves(
    c: Compiled,
    rows: Ints,
    groups: Ints,
    targets: Ints,
    devices: Ints,
    kept: Kept,
    columns: Columns,
) -> None:
    """Simulates the placements of some rows of a batch over all cores; one row without threads.

    Args:
        c: the compiled problem.
        rows: (n,) which, each at most once.
        groups: (n,) the group that moves in each; -1 to simulate the row from scratch.
        targets: (n,) its device.
        devices: (batch, num_groups) the placements; changed.
        kept: changed in these rows.
        columns: likewise.
    """
    if len(rows) == 1:
        _run(c, rows[0], groups[0], targets[0], devices, kept, columns)
    else:
        _run_over_cores(c, rows, groups, targets, devices, kept, columns)


@njit(cache=True, parallel=True)
def _run_over_cores(
    c: Compiled,
    rows: Ints,
    groups: Ints,
    targets: Ints,
    devices: Ints,
    kept: Kept,
    columns: Columns,
) -> None:  # pragma: no cover
    for index in prange(len(rows)):
        _run(c, rows[index], groups[index], targets[index], devices, kept, columns)


@njit(cache=True)
def _run(
    c: Compiled, row: int, group: int, new: int, devices: Ints, kept: Kept, columns: Columns
) -> None:  # pragma: no cover
    snapshots = kept.taken.shape[1]
    taken = kept.taken[row]
    num_kept = len(c.missing)
    s = view(c, kept.ints[row], kept.longs[row], kept.reals[row])
    first = -1
    if group >= 0:
        old = devices[row, group]
        devices[row, group] = new
        first = resume_from(c, s, taken, group, old, new)
        for number in range(first + 1):
            if taken[number] != NO_SNAPSHOT:
                t = _snapshot(c, kept, row, number)
                move_memory(c, t, group, old, -1)
                move_memory(c, t, group, new, 1)
                if number == first:
                    copy_state(t, s)
    if first < 0:
        begin(c, devices[row], s)
    else:
        set_devices(s, devices[row])
    for number in range(first + 1, snapshots):
        left = num_kept * (snapshots - number) // (snapshots + 1)
        advance(c, s, left, GROUPS)
        taken[number] = NO_SNAPSHOT
        if settled(s):
            taken[number] = s.counts[INSTANTS]
            copy_state(s, _snapshot(c, kept, row, number))
    advance(c, s, 0, GROUPS)
    columns.step_time[row] = read(s, columns.peak[row], columns.group_start[row])


@njit(cache=True)
def _snapshot(c: Compiled, kept: Kept, row: int, number: int) -> State:  # pragma: no cover
    return view(
        c, kept.kept_ints[row, number], kept.kept_longs[row, number], kept.kept_reals[row, number]
    )
