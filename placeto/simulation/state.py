"""What the kernel reads, a problem in flat arrays, and what it writes.

A state's arrays are views of one buffer, so that a simulation allocates nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from placeto.simulation.queues import enqueue_by_rank
from placeto.simulation.records import (
    Bundles,
    Channels,
    Copies,
    Crossings,
    Devices,
    Links,
    Ops,
    Parts,
    Slots,
    Sources,
    Status,
    Transfers,
    Waiting,
)
from placeto.support.arrays import Bools, Floats, Int16s, Int32s, Ints, Words
from placeto.support.jit import ALIGNED, Layout, inner

# What is wanted of a simulation: step time and peak memory; when groups start; when ops start, too.
STEP, GROUPS, OPS = range(3)

Buffers = NDArray[np.uint8]
"""(num_states, size) what states of the simulator are kept in."""


class Compiled(NamedTuple):
    """A problem as the kernel reads it.

    Ops are those kept, in their order. A tensor *crosses* if an op of another group consumes it; a
    *bundle* is a crossing tensor with all its consumers in one other group. A *slot* counts what
    still holds a piece of memory: first the tensors that stay in their group and have several
    holders, then the crossing tensors, then copies in the order in which they are made. *Holders*
    are numbered alike, with bundles in the place of copies.
    """

    ops: Ops  # (num_kept + 1,)
    op_seconds: Floats  # (num_kept, num_columns) s
    device_kind: Int32s  # (num_devices,) column
    lone_kind: Int32s  # (num_devices,) column where all groups are on the device
    missing: Int32s  # (num_kept,) inputs to wait for
    local: Int32s  # (num_local,) consumers in the op's own group
    held: Int32s  # (num_held,) holders that end with an op
    slots: Slots  # (num_slots,)
    crossings: Crossings  # (num_crossing + 1,)
    bundles: Bundles  # (num_bundles + 1,)
    bundled: Int32s  # (num_bundled,) consumers of bundles
    sources: Sources  # (num_sources,)
    ranks: Int32s  # (num_kept,) lower ones go first; (0,) if what was ready first does
    signal_start: Int32s  # (num_kept + 1,) of `signals`; (0,) if there are none
    signals: Int32s  # (num_signals,) ops that wait for an op, wherever they are
    group_bytes: Ints  # (num_groups,) parameters
    launch_overhead: Floats  # (num_devices,) s
    channel_between: Ints  # (num_devices, num_devices), -1 on the diagonal
    bandwidth: Floats  # (num_channels,) bytes/s
    latency: Floats  # (num_channels,) s
    overhead: Floats  # (num_channels,) s
    multicast: Bools  # (num_channels,)
    path_start: Ints  # (num_channels + 1,) of `path`
    path: Ints  # links
    links: Floats  # (num_links, 2) bytes/s, s of latency
    cost_start: Ints  # (2 num_channels + 1,) of `costs`: to send, to receive
    costs: Floats  # (num_costs, 3) from how many bytes, s, s/byte
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
    status: Status  # (1,)
    devices: Devices  # (num_devices,)
    missing: Int32s  # (num_kept,) inputs that are not on the op's device yet
    links: Links  # (num_bundles,)
    source_next: Int32s  # (num_sources,) the next source on the same device, or -1
    ready: Int32s  # (num_devices, num_kept) ops in the order of their turns; or a heap a rank
    waiting_ops: Waiting  # (num_kept,) by number: heaps are of one instant; or of one rank
    copy_at: Int32s  # (num_devices,) of the tensor at hand: its copy there, or -1
    done: Int32s  # (num_devices,) devices whose op finishes at the instant
    channels: Channels  # (num_queues,) of channels; and of links, if there are parts
    stirred: Int32s  # (num_queues,) channels or links that may start a transfer
    copies: Copies  # (num_bundles,)
    transfers: Transfers  # (num_bundles,)
    waiting: Waiting  # (num_bundles,) transfers; keys: lowest consumer, tensor of the graph
    event_codes: Int32s  # (num_bundles + num_queues,) transfer that arrives; or ~channel
    event_times: Floats  # (num_bundles + num_queues,) s
    slots: Slots  # (num_slots + num_bundles,)
    group_start: Floats  # (num_groups,) s, first start of an op that takes time; 0 if none does
    op_start: Floats  # (num_kept,) s; written if the schedule is wanted
    source_start: Floats  # (num_sources,) s; likewise
    parts: Parts  # (num_bundles,) transfers; none if each is one part
    # (num_bundles * longest chain,) s, of its parts, where they have one; likewise.
    part_start: Floats
    op_finish: Floats  # (num_kept,) s; likewise, where there are parts
    turns: Words  # bits for the ranks of the ops that wait on each device, see `enqueue_by_rank`


def _element(hint: Any) -> np.dtype[Any]:
    """What an array of this type is of."""
    if get_origin(hint) is Annotated:
        kind: np.dtype[Any] = hint.__metadata__[0]
        return kind
    # `NDArray[…]` of numpy before 2.5 is an array of any shape and a dtype, since then itself.
    *_, last = get_args(hint)
    return np.dtype((*get_args(last), last)[0])


_HINTS = get_type_hints(State, include_extras=True).values()
_LAYOUT = Layout(State, [_element(hint) for hint in _HINTS])
_carve, STATE = _LAYOUT.carve, _LAYOUT.kind


@inner(cache=True)
def lengths(c: Compiled) -> tuple[int, ...]:
    """How long the arrays of a state are."""
    kept, devices, queues = len(c.missing), len(c.device_kind), len(c.bandwidth)
    groups, sources, bundles = len(c.group_bytes), len(c.sources), len(c.bundles) - 1
    parts = longest = finishes = 0
    words = (len(c.ranks) + 63) // 64
    above = (words + 63) // 64
    if len(c.path) + len(c.costs) + len(c.ranks) > 0:
        queues += len(c.links)
        parts, longest, finishes = bundles, 3, kept
        for channel in range(len(c.bandwidth)):
            longest = max(longest, c.path_start[channel + 1] - c.path_start[channel] + 2)
    return (
        groups, 1, devices, kept, bundles, sources, devices * kept, kept, devices, devices,
        queues, queues, bundles, bundles, bundles, bundles + queues, bundles + queues,
        len(c.slots) + bundles, groups, kept, sources, parts, parts * longest, finishes,
        devices * (words + above),
    )  # fmt: skip


@inner(cache=True)
def view(c: Compiled, buffer: NDArray[np.uint8]) -> State:
    """The state that a buffer holds, in compiled code."""
    found: State = _carve(buffer, lengths(c))
    return found


def state_in(c: Compiled, buffer: NDArray[np.uint8]) -> State:
    """The state that a buffer holds."""
    found: State = _LAYOUT.split(buffer, lengths.py_func(c))
    return found


@inner(cache=True)
def begin(c: Compiled, devices: Ints, s: State) -> None:
    """Sets a state to the beginning of a step; `devices` (num_groups,) are the groups'."""
    num_kept, num_devices = len(c.missing), len(c.device_kind)
    s.status[0].now = 0.0
    s.status[0].remaining = num_kept
    s.status[0].instant = 0
    s.status[0].num_copies = s.status[0].num_transfers = s.status[0].num_events = 0
    # In loops, which become plain copies; numba's slices ask first whether they overlap.
    for op in range(num_kept):
        s.missing[op] = c.missing[op]
    for slot in range(len(c.slots)):
        s.slots[slot].left = c.slots[slot].left
        s.slots[slot].bytes = c.slots[slot].bytes
    s.group_start[:] = -1.0
    lone = True
    for group in range(1, len(devices)):
        lone &= devices[group] == devices[0]
    for word in range(len(s.turns)):
        s.turns[word] = 0
    for device in range(num_devices):
        d = s.devices[device]
        d.head = d.tail = d.latest = d.first_tail = device * num_kept
        d.root = d.running = d.source = -1
        d.kind = c.lone_kind[device] if lone else c.device_kind[device]
        d.memory = d.peak = 0
        d.latest_at = -1.0
        d.next_time = 0.0  # which makes 0 the first instant
        d.free = d.carries_until = 0.0
    for group in range(len(devices)):
        s.device_of[group] = devices[group]
        d = s.devices[devices[group]]
        d.memory += c.group_bytes[group]
        d.peak += c.group_bytes[group]
    for channel in range(len(s.channels)):
        queue = s.channels[channel]
        queue.first = queue.last = queue.root = queue.at_hand = queue.wakes = -1
        queue.free = 0.0
    for source in range(len(c.sources) - 1, -1, -1):
        d = s.devices[devices[c.sources[source].group]]
        if len(c.ranks) > 0:
            op = c.sources[source].op
            device = devices[c.sources[source].group]
            enqueue_by_rank(s.ready, s.waiting_ops, c.ranks, s.turns, device, op, 0)
            continue
        s.source_next[source] = d.source
        d.source = source


@inner(cache=True)
def read(s: State, peak: Ints, group_start: Floats) -> float:
    """Fills in what a finished simulation found; returns the step time in seconds.

    Peaks are (num_devices,) bytes, starts (num_groups,) seconds, or (0,) where they are not wanted.
    """
    for device in range(len(peak)):
        peak[device] = s.devices[device].peak
    for group in range(len(group_start)):
        group_start[group] = max(s.group_start[group], 0.0)
    step_time: float = s.status[0].now
    return step_time


def buffers(c: Compiled, rows: int) -> Buffers:
    """Buffers for `rows` states, prepared."""
    size = _LAYOUT.ends(lengths.py_func(c))[-1]
    memory = np.empty(rows * size + ALIGNED, dtype=np.uint8)
    begin = -memory.ctypes.data % ALIGNED
    found = memory[begin : begin + rows * size].reshape(rows, size)
    for buffer in found:  # what no simulation changes
        s = state_in(c, buffer)
        s.waiting_ops["first"] = s.waiting_ops["second"] = np.arange(len(c.missing))
        s.waiting_ops["since"] = c.ranks if len(c.ranks) else 0.0
        s.copy_at[:] = -1
    return found


@contextmanager
def borrowed(reduction: Reduction, rows: int) -> Iterator[Buffers]:
    """Buffers for at least `rows` states of a compiled problem, kept for the next who asks."""
    try:
        found = reduction.spare.pop()
    except IndexError:
        found = buffers(reduction.compiled, rows)
    if len(found) < rows:
        found = buffers(reduction.compiled, rows)
    yield found
    reduction.spare.append(found)
