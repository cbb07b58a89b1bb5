"""What one simulation writes: views of three flat buffers, so that it allocates nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, get_type_hints

import numpy as np
from numba import types

from placeto.simulation.compiled import (
    BUNDLE_ROW,
    SLOT_ROW,
    SOURCE_GROUP,
    SOURCE_ROW,
    Buffers,
    Compiled,
    Reduction,
)
from placeto.simulation.queues import (
    CHANNEL_ROW,
    DEVICE_ROW,
    FIRST_TAIL,
    FREE,
    HEAD,
    LATEST,
    LATEST_AT,
    MEMORY,
    NEXT_TIME,
    PEAK,
    ROOT,
    RUNNING,
    SOURCE,
    TAIL,
)
from placeto.support.arrays import Floats, Int16s, Int32s, Ints
from placeto.support.jit import cut, njit

# What is wanted of a simulation: step time and peak memory; when groups start; when ops start, too.
STEP, GROUPS, OPS = range(3)
# `State.counts`.
REMAINING, NUM_COPIES, NUM_TRANSFERS, NUM_EVENTS = range(4)
# Columns of `State.copies` and `State.transfers`.
BUNDLE, NEXT_COPY, ON_DEVICE = range(3)
CHANNEL, CROSSING, COPY, SENDER = range(4)
COPY_ROW, TRANSFER_ROW = 4, 4


class State(NamedTuple):
    """Where a simulation stands.

    A copy is a crossing tensor on a device that did not produce it; a transfer brings one copy, or
    several on a multicast channel. Copies and transfers are numbered as they are requested; there
    are at most as many as bundles.
    """

    counts: Int32s  # (4,)
    missing: Int32s  # (num_kept,) inputs that are not on the op's device yet
    slots: Ints  # (num_slots + num_bundles, 2) how many hold each, and its bytes
    holder_slot: Int32s  # (num_bundles,) which slot a bundle holds
    bundle_next: Int32s  # (num_bundles,) another bundle of the same copy, or -1
    source_next: Int32s  # (num_sources,) the next source on the same device, or -1
    device_of: Int16s  # (num_groups,) narrow, so that more of it is at hand
    ready: Int32s  # (num_devices, num_kept) ops in the order of their turns
    ready_links: Int32s  # (num_kept, 2)
    ready_keys: Int32s  # (num_kept, 2) each op's own number, twice
    device_ints: Ints  # (num_devices, 16)
    device_reals: Floats  # (num_devices, 16) the same memory
    copy_at: Int32s  # (num_devices,) of the tensor at hand: its copy there, or -1
    done: Int32s  # (num_devices,) devices whose op finishes at the instant
    channel_queue: Int32s  # (num_channels, 5)
    stirred: Int32s  # (num_channels,) channels that may start a transfer
    copies: Int32s  # (num_bundles, 3) first bundle, next copy of its transfer, device
    transfers: Int32s  # (num_bundles, 4) channel, crossing tensor, first copy, sending device
    transfer_links: Int32s  # (num_bundles, 2)
    transfer_keys: Int32s  # (num_bundles, 2) lowest consumer that waits, tensor of the graph
    event_codes: Int32s  # (num_bundles + num_channels,) transfer that arrives; or ~channel
    channel_free: Floats  # (num_channels,) s
    event_times: Floats  # (num_bundles + num_channels,) s
    ready_since: Floats  # (num_kept,) all the same: the heaps of ops are of one instant
    requested: Floats  # (num_bundles,) s, of each transfer
    sent: Floats  # (num_bundles,) s, start of each transfer
    group_start: Floats  # (num_groups,) s, first start of an op that takes time; 0 if none does
    clock: Floats  # (1,) s, the last instant
    op_start: Floats  # (num_kept,) s; written if the schedule is wanted
    source_start: Floats  # (num_sources,) s; likewise


_KINDS = {
    Int16s: types.int16[::1],
    Int32s: types.int32[::1],
    Ints: types.int64[::1],
    Floats: types.float64[::1],
}
STATE = types.NamedTuple([_KINDS[hint] for hint in get_type_hints(State).values()], State)


@njit(cache=True)
def view(c: Compiled, ints: Int32s, longs: Ints, reals: Floats) -> State:  # pragma: no cover
    """The state that three buffers hold."""
    kept, devices = len(c.missing), len(c.device_kind)
    channels, groups = len(c.bandwidth), len(c.group_bytes)
    sources, bundles = len(c.source_bytes), len(c.bundle_rows) // BUNDLE_ROW - 1
    num_slots = len(c.slots) + SLOT_ROW * bundles
    events = bundles + channels
    counts, ints = cut(ints, 4)
    missing, ints = cut(ints, kept)
    holder_slot, ints = cut(ints, bundles)
    bundle_next, ints = cut(ints, bundles)
    source_next, ints = cut(ints, sources)
    ready, ints = cut(ints, devices * kept)
    ready_links, ints = cut(ints, kept * 2)
    ready_keys, ints = cut(ints, kept * 2)
    copy_at, ints = cut(ints, devices)
    done, ints = cut(ints, devices)
    channel_queue, ints = cut(ints, channels * CHANNEL_ROW)
    stirred, ints = cut(ints, channels)
    copies, ints = cut(ints, bundles * COPY_ROW)
    transfers, ints = cut(ints, bundles * TRANSFER_ROW)
    transfer_links, ints = cut(ints, bundles * 2)
    transfer_keys, ints = cut(ints, bundles * 2)
    event_codes, ints = cut(ints, events)
    device_of, ints = cut(ints, (groups + 1) // 2)
    device_ints, longs = cut(longs, devices * DEVICE_ROW)
    slots, longs = cut(longs, num_slots)
    channel_free, reals = cut(reals, channels)
    event_times, reals = cut(reals, events)
    ready_since, reals = cut(reals, kept)
    requested, reals = cut(reals, bundles)
    sent, reals = cut(reals, bundles)
    group_start, reals = cut(reals, groups)
    clock, reals = cut(reals, 1)
    op_start, reals = cut(reals, kept)
    source_start, reals = cut(reals, sources)
    return State(
        counts, missing, slots, holder_slot, bundle_next, source_next,
        device_of.view(np.int16)[:groups], ready, ready_links, ready_keys, device_ints,
        device_ints.view(np.float64), copy_at, done, channel_queue, stirred, copies, transfers,
        transfer_links, transfer_keys, event_codes, channel_free, event_times,
        ready_since, requested, sent, group_start, clock, op_start, source_start,
    )  # fmt: skip


def buffer_sizes(c: Compiled) -> tuple[int, int, int]:
    """How many 32-bit integers, 64-bit integers and floats a state takes."""
    kept, devices = len(c.missing), len(c.device_kind)
    channels, groups = len(c.bandwidth), len(c.group_bytes)
    sources, bundles = len(c.source_bytes), len(c.bundle_rows) // BUNDLE_ROW - 1
    slots = len(c.slots) + SLOT_ROW * bundles
    ints = 4 + (5 + devices) * kept + sources + 2 * devices + 10 * channels
    longs = DEVICE_ROW * devices + slots
    reals = 1 + 2 * channels + 3 * bundles + groups + 2 * kept + sources
    return ints + 15 * bundles + (groups + 1) // 2, longs, reals


@njit(cache=True)
def prepare(c: Compiled, s: State) -> None:  # pragma: no cover
    """Writes what no simulation of the problem changes, once."""
    for op in range(len(c.missing)):
        s.ready_keys[2 * op] = s.ready_keys[2 * op + 1] = op
        s.ready_since[op] = 0.0
    s.copy_at[:] = -1


@njit(cache=True)
def begin(c: Compiled, devices: Ints, s: State) -> None:  # pragma: no cover
    """Sets a state to the beginning of a step.

    Args:
        c: the compiled problem.
        devices: (num_groups,) device of each group.
        s: written.
    """
    num_kept, num_devices = len(c.missing), len(c.device_kind)
    s.counts[:] = 0
    s.counts[REMAINING] = num_kept
    # In loops, which become plain copies; numba's slices ask first whether they overlap.
    for op in range(num_kept):
        s.missing[op] = c.missing[op]
    for word in range(len(c.slots)):
        s.slots[word] = c.slots[word]
    s.group_start[:] = -1.0
    s.clock[0] = 0.0
    for group in range(len(devices)):
        s.device_of[group] = devices[group]
    for device in range(num_devices):
        row = device * DEVICE_ROW
        for position in (HEAD, TAIL, LATEST, FIRST_TAIL):
            s.device_ints[row + position] = device * num_kept
        for nothing in (ROOT, RUNNING, SOURCE):
            s.device_ints[row + nothing] = -1
        s.device_ints[row + MEMORY] = 0
        s.device_reals[row + LATEST_AT] = -1.0
        s.device_reals[row + NEXT_TIME] = 0.0  # which makes 0 the first instant
        s.device_reals[row + FREE] = 0.0
    for group in range(len(devices)):
        s.device_ints[devices[group] * DEVICE_ROW + MEMORY] += c.group_bytes[group]
    for device in range(num_devices):
        row = device * DEVICE_ROW
        s.device_ints[row + PEAK] = s.device_ints[row + MEMORY]
    s.channel_queue[:] = -1
    s.channel_free[:] = 0.0
    for source in range(len(c.source_bytes) - 1, -1, -1):
        group = c.source_rows[source * SOURCE_ROW + SOURCE_GROUP]
        queue = devices[group] * DEVICE_ROW + SOURCE
        s.source_next[source] = s.device_ints[queue]
        s.device_ints[queue] = source


def buffers(c: Compiled, rows: int) -> Buffers:
    """Buffers for `rows` states, (rows, size) each, prepared."""
    sizes = buffer_sizes(c)
    ints = np.empty((rows, sizes[0]), dtype=np.int32)
    longs = np.empty((rows, sizes[1]), dtype=np.int64)
    reals = np.empty((rows, sizes[2]))
    for row in range(rows):
        prepare(c, view(c, ints[row], longs[row], reals[row]))
    return ints, longs, reals


@contextmanager
def borrowed(reduction: Reduction, rows: int) -> Iterator[Buffers]:
    """Buffers for at least `rows` states of a compiled problem, kept for the next who asks."""
    try:
        found = reduction.spare.pop()
    except IndexError:
        found = buffers(reduction.compiled, rows)
    if len(found[0]) < rows:
        found = buffers(reduction.compiled, rows)
    yield found
    reduction.spare.append(found)
