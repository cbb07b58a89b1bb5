"""What the kernel reads, a problem in flat arrays, and what it writes.

A state's arrays are views of three flat buffers, so that a simulation allocates nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, get_type_hints

import numpy as np
from numba import types

from placeto.simulation import columns as col
from placeto.support.arrays import Bools, Floats, Int16s, Int32s, Ints
from placeto.support.jit import cut, inner, njit

# What is wanted of a simulation: step time and peak memory; when groups start; when ops start, too.
STEP, GROUPS, OPS = range(3)

Buffers = tuple[Int32s, Ints, Floats]
"""What one or several states of the simulator are kept in."""


class Compiled(NamedTuple):
    """A problem as the kernel reads it.

    Ops are those kept, in their order. The first two arrays about them are the same memory, 32
    bytes an op, read as eight 32-bit and as four 64-bit integers. A tensor *crosses* if an op of
    another group consumes it; a *bundle* is a crossing tensor with all its consumers in one other
    group. A *slot* counts what still holds a piece of memory: first the tensors that stay in their
    group and have several holders, then the crossing tensors, then copies in the order in which
    they are made. *Holders* are numbered alike, with bundles in the place of copies.
    """

    op_rows: Int32s  # (num_kept + 1, 8) first local consumer, crossing tensor and held, group, …
    op_bytes: Ints  # (num_kept + 1, 4) …, bytes allocated at the start and freed at the finish
    op_seconds: Floats  # (num_kept, num_kinds) s
    device_kind: Int32s  # (num_devices,)
    missing: Int32s  # (num_kept,) inputs to wait for
    local: Int32s  # (num_local,) consumers in the op's own group
    held: Int32s  # (num_held,) holders that end with an op
    slots: Ints  # (num_slots, 2) holders in the producer's own group, bytes
    crossing_rows: Int32s  # (num_crossing + 1, 2) first bundle, tensor of the graph
    bundle_rows: Int32s  # (num_bundles + 1, 4) first consumer, group, lowest consumer, holders
    bundled: Int32s  # (num_bundled,) consumers of bundles
    source_rows: Int32s  # (num_sources, 3) op, or -1 for constants; ops kept before it; group
    source_bytes: Ints  # (num_sources,) what constants allocate
    group_bytes: Ints  # (num_groups,) parameters
    launch_overhead: Floats  # (num_devices,) s
    channel_between: Ints  # (num_devices, num_devices), -1 on the diagonal
    bandwidth: Floats  # (num_channels,) bytes/s
    latency: Floats  # (num_channels,) s
    overhead: Floats  # (num_channels,) s
    multicast: Bools  # (num_channels,)
    kernel: int  # where the compiled kernel is in this process


@dataclass(frozen=True, eq=False)
class Reduction:
    """A compiled problem, and where its ops are in the graph.

    Attributes:
        compiled: what the kernel reads.
        kept: (num_kept,) ops.
        constants: (num_constants,) ops that are not simulated.
        constant_source: (num_constants,) which source of `compiled` each is part of.
        spare: buffers that no simulation uses at the moment.
    """

    compiled: Compiled
    kept: Ints
    constants: Ints
    constant_source: Ints
    spare: list[Buffers] = field(default_factory=list)


class State(NamedTuple):
    """Where a simulation stands.

    A copy is a crossing tensor on a device that did not produce it; a transfer brings one copy, or
    several on a multicast channel. Copies and transfers are numbered as they are requested; there
    are at most as many as bundles.
    """

    device_of: Int16s  # (num_groups,) narrow, so that more of it is at hand
    device_reals: Floats  # (num_devices, 16) the same memory as `device_ints`
    counts: Int32s  # (4,)
    missing: Int32s  # (num_kept,) inputs that are not on the op's device yet
    holder_slot: Int32s  # (num_bundles,) which slot a bundle holds
    bundle_next: Int32s  # (num_bundles,) another bundle of the same copy, or -1
    source_next: Int32s  # (num_sources,) the next source on the same device, or -1
    ready: Int32s  # (num_devices, num_kept) ops in the order of their turns
    ready_links: Int32s  # (num_kept, 2)
    ready_keys: Int32s  # (num_kept, 2) each op's own number, twice
    copy_at: Int32s  # (num_devices,) of the tensor at hand: its copy there, or -1
    done: Int32s  # (num_devices,) devices whose op finishes at the instant
    channel_queue: Int32s  # (num_channels, 8)
    stirred: Int32s  # (num_channels,) channels that may start a transfer
    copies: Int32s  # (num_bundles, 4) first bundle, next copy of its transfer, device
    transfers: Int32s  # (num_bundles, 4) channel, crossing tensor, first copy, sending device
    transfer_links: Int32s  # (num_bundles, 2)
    transfer_keys: Int32s  # (num_bundles, 2) lowest consumer that waits, tensor of the graph
    event_codes: Int32s  # (num_bundles + num_channels,) transfer that arrives; or ~channel
    slots: Ints  # (num_slots + num_bundles, 2) how many hold each, and its bytes
    device_ints: Ints  # (num_devices, 16)
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


@inner(cache=True)
def sizes(c: Compiled) -> tuple[tuple[int, ...], ...]:
    """How many 32-bit integers, 64-bit integers and floats the arrays of a state take, in order.

    The last of 32 bits is for `device_of`, which is narrower.
    """
    kept, devices, channels = len(c.missing), len(c.device_kind), len(c.bandwidth)
    groups, sources = len(c.group_bytes), len(c.source_bytes)
    bundles = len(c.bundle_rows) // col.BUNDLE_ROW - 1
    events = bundles + channels
    return (
        (
            4, kept, bundles, bundles, sources, devices * kept, 2 * kept, 2 * kept, devices,
            devices, channels * col.CHANNEL_ROW, channels, bundles * col.COPY_ROW,
            bundles * col.TRANSFER_ROW, 2 * bundles, 2 * bundles, events, (groups + 1) // 2,
        ),
        (len(c.slots) + col.SLOT_ROW * bundles, devices * col.DEVICE_ROW),
        (channels, events, kept, bundles, bundles, groups, 1, kept, sources),
    )  # fmt: skip


@njit(cache=True)
def view(c: Compiled, ints: Int32s, longs: Ints, reals: Floats) -> State:
    """The state that three buffers hold."""
    of_ints, of_longs, of_reals = sizes(c)
    narrow, wide = cut(ints, of_ints), cut(longs, of_longs)
    device_of, device_reals = narrow[-1].view(np.int16), wide[-1].view(np.float64)
    return State(device_of, device_reals, *narrow[:-1], *wide, *cut(reals, of_reals))


@njit(cache=True)
def begin(c: Compiled, devices: Ints, s: State) -> None:
    """Sets a state to the beginning of a step; `devices` (num_groups,) are the groups'."""
    num_kept, num_devices = len(c.missing), len(c.device_kind)
    s.counts[:] = 0
    s.counts[col.REMAINING] = num_kept
    # In loops, which become plain copies; numba's slices ask first whether they overlap.
    for op in range(num_kept):
        s.missing[op] = c.missing[op]
    for word in range(len(c.slots)):
        s.slots[word] = c.slots[word]
    s.group_start[:] = -1.0
    s.clock[0] = 0.0
    for device in range(num_devices):
        row = device * col.DEVICE_ROW
        for position in (col.HEAD, col.TAIL, col.LATEST, col.FIRST_TAIL):
            s.device_ints[row + position] = device * num_kept
        for nothing in (col.ROOT, col.RUNNING, col.SOURCE):
            s.device_ints[row + nothing] = -1
        s.device_ints[row + col.MEMORY] = s.device_ints[row + col.PEAK] = 0
        s.device_reals[row + col.LATEST_AT] = -1.0
        s.device_reals[row + col.NEXT_TIME] = 0.0  # which makes 0 the first instant
        s.device_reals[row + col.FREE] = 0.0
    for group in range(len(devices)):
        s.device_of[group] = devices[group]
        row = devices[group] * col.DEVICE_ROW
        s.device_ints[row + col.MEMORY] += c.group_bytes[group]
        s.device_ints[row + col.PEAK] += c.group_bytes[group]
    s.channel_queue[:] = -1
    s.channel_free[:] = 0.0
    for source in range(len(c.source_bytes) - 1, -1, -1):
        group = c.source_rows[source * col.SOURCE_ROW + col.SOURCE_GROUP]
        queue = devices[group] * col.DEVICE_ROW + col.SOURCE
        s.source_next[source] = s.device_ints[queue]
        s.device_ints[queue] = source


@njit(cache=True)
def read(s: State, peak: Ints, group_start: Floats) -> float:
    """Fills in what a finished simulation found; returns the step time in seconds.

    Peaks are (num_devices,) bytes, starts (num_groups,) seconds, or (0,) where they are not wanted.
    """
    for device in range(len(peak)):
        peak[device] = s.device_ints[device * col.DEVICE_ROW + col.PEAK]
    for group in range(len(group_start)):
        group_start[group] = max(s.group_start[group], 0.0)
    return s.clock[0]


def buffers(c: Compiled, rows: int) -> Buffers:
    """Buffers for `rows` states, (rows, size) each, prepared."""
    ints, longs, reals = (
        np.empty((rows, sum(part)), kind)
        for part, kind in zip(sizes.py_func(c), (np.int32, np.int64, np.float64), strict=True)
    )
    for row in range(rows):  # what no simulation changes
        s = view(c, ints[row], longs[row], reals[row])
        s.ready_keys[:] = np.repeat(np.arange(len(c.missing)), 2)
        s.ready_since[:] = 0.0
        s.copy_at[:] = -1
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
