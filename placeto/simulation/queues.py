"""The queues of the simulation kernel: ready ops, requested transfers, events.

Ops wait for a device, and transfers for a channel, in the order of (instant, first key, second
key). Instants only grow, so nearly every item belongs at the end: it goes into a plain first-in
first-out list. The few that do not (many things at one instant) go into a pairing heap (Fredman,
Sedgewick, Sleator & Tarjan 1986), so that no input makes a queue slow. The next item is the lesser
of the two firsts.
"""

import numpy as np

from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.jit import inner

# Columns of `State.device_ints`: positions in the device's row of `State.ready` (the next op, the
# end, the first op of the last instant, the end of those of instant 0), the heap's root, the op
# that runs, the next source; bytes in use, and their peak.
HEAD, TAIL, LATEST, FIRST_TAIL, ROOT, RUNNING, SOURCE = range(7)
MEMORY, PEAK = range(7, 9)
# Columns of `State.device_reals`, the same memory, in seconds: when its op finishes or it becomes
# free, or infinite; from when on it may start an op; the last instant at which an op became ready.
NEXT_TIME, FREE, LATEST_AT = range(9, 12)
DEVICE_ROW = 16
# Columns of `State.channel_queue`: ends of the list, the heap's root, the transfer of the tensor at
# hand, and whether the channel will be looked at: -1 not, 0 by an event, 1 at this instant.
FIRST, LAST, HEAP, AT_HAND, WAKES = range(5)
CHANNEL_ROW = 8
# Columns of links.
CHILD, NEXT = range(2)

ReadyQueues = tuple[Ints, Floats, Int32s, Int32s, Int32s]

# An index that is known not to be negative: numba then spares itself the check.
u = np.uint64

# Without reference counting, which is most of what calling these would cost; they keep no array.
allocation_free = inner(cache=True, _nrt=False)


@allocation_free
def precedes(since: Floats, keys: Int32s, item: int, other: int) -> bool:  # pragma: no cover
    """Whether an item comes before another in a queue.

    Args:
        since: (num_items,) when each began to wait, in seconds.
        keys: (num_items, 2) what orders the items of one instant.
        item: one.
        other: another.
    """
    if since[u(item)] != since[u(other)]:
        return since[u(item)] < since[u(other)]
    if keys[u(2 * item + 0)] != keys[u(2 * other + 0)]:
        return keys[u(2 * item + 0)] < keys[u(2 * other + 0)]
    return keys[u(2 * item + 1)] < keys[u(2 * other + 1)]


@allocation_free
def meld(links: Int32s, since: Floats, keys: Int32s, a: int, b: int) -> int:  # pragma: no cover
    """Joins two heaps, of roots `a` and `b`; returns the root."""
    if a < 0:
        return b
    if precedes(since, keys, b, a):
        a, b = b, a
    links[u(2 * b + NEXT)] = links[u(2 * a + CHILD)]
    links[u(2 * a + CHILD)] = b
    return a


@allocation_free
def heap_insert(
    links: Int32s, since: Floats, keys: Int32s, root: int, item: int
) -> int:  # pragma: no cover
    """Adds an item to the heap of `root`, -1 for an empty one; returns the root."""
    links[u(2 * item + CHILD)] = -1
    links[u(2 * item + NEXT)] = -1
    return meld(links, since, keys, root, item)


@allocation_free
def heap_rest(links: Int32s, since: Floats, keys: Int32s, root: int) -> int:  # pragma: no cover
    """The root of a heap after its root is taken out; -1 if nothing is left."""
    pairs = -1
    child = links[u(2 * root + CHILD)]
    while child >= 0:
        other = links[u(2 * child + NEXT)]
        rest = -1 if other < 0 else links[u(2 * other + NEXT)]
        joined = child if other < 0 else meld(links, since, keys, child, other)
        links[u(2 * joined + NEXT)] = pairs
        pairs = joined
        child = rest
    rest = -1
    while pairs >= 0:
        following = links[u(2 * pairs + NEXT)]
        rest = meld(links, since, keys, rest, pairs)
        pairs = following
    return rest


@inner(cache=True, _nrt=False, forceinline=True)
def enqueue(
    queues: ReadyQueues, since: Floats, device: int, op: int, now: float
) -> None:  # pragma: no cover
    """Adds an op that is ready at `now` to its device's queue.

    Args:
        queues: changed: `device_ints` and `device_reals` (num_devices, 16); `ready` (num_devices,
            num_kept) ops in order; and of the heaps (num_kept, 2) links and (num_kept, 2) keys,
            each op's own number.
        since: (num_kept,) all the same.
        device: which queue.
        op: what to add.
        now: seconds.
    """
    device_ints, device_reals, ready, _, _ = queues
    tail = device_ints[u(DEVICE_ROW * device + TAIL)]
    if device_reals[u(DEVICE_ROW * device + LATEST_AT)] != now:
        if device_ints[u(DEVICE_ROW * device + ROOT)] >= 0:
            tail = heap_to_list(queues, since, device)
        if device_reals[u(DEVICE_ROW * device + LATEST_AT)] == 0:
            device_ints[u(DEVICE_ROW * device + FIRST_TAIL)] = tail
        device_ints[u(DEVICE_ROW * device + LATEST)] = tail
        device_reals[u(DEVICE_ROW * device + LATEST_AT)] = now
    elif tail > device_ints[u(DEVICE_ROW * device + HEAD)] and ready[u(tail - 1)] > op:
        add_to_heap(queues, since, device, op)
        return
    ready[u(tail)] = op
    device_ints[u(DEVICE_ROW * device + TAIL)] = tail + 1


@allocation_free
def add_to_heap(
    queues: ReadyQueues, since: Floats, device: int, op: int
) -> None:  # pragma: no cover
    """Adds an op to the heap of a device's queue; see `enqueue`."""
    device_ints, _, _, links, keys = queues
    root = device_ints[u(DEVICE_ROW * device + ROOT)]
    device_ints[u(DEVICE_ROW * device + ROOT)] = heap_insert(links, since, keys, root, op)


@allocation_free
def heap_to_list(queues: ReadyQueues, since: Floats, device: int) -> int:  # pragma: no cover
    """Merges the heap of a device's queue with the list's ops of the same instant.

    Returns:
        The end of the list after; see `enqueue`.
    """
    device_ints, _, ready, links, keys = queues
    begin = max(
        device_ints[u(DEVICE_ROW * device + LATEST)], device_ints[u(DEVICE_ROW * device + HEAD)]
    )
    root: int = device_ints[u(DEVICE_ROW * device + ROOT)]
    for position in range(begin, device_ints[u(DEVICE_ROW * device + TAIL)]):
        root = heap_insert(links, since, keys, root, ready[u(position)])
    tail: int = begin
    while root >= 0:
        ready[u(tail)] = root
        tail += 1
        root = heap_rest(links, since, keys, root)
    device_ints[u(DEVICE_ROW * device + ROOT)] = -1
    return tail


@allocation_free
def request(
    channel_queue: Int32s,
    since: Floats,
    links: Int32s,
    keys: Int32s,
    channel: int,
    transfer: int,
) -> None:  # pragma: no cover
    """Adds a transfer to its channel's queue.

    Args:
        channel_queue: (num_channels, 5) changed.
        since: (num_bundles,) when each transfer was requested, in seconds.
        links: (num_bundles, 2) changed.
        keys: (num_bundles, 2) lowest consumer that waits, tensor.
        channel: which queue.
        transfer: what to add.
    """
    last = channel_queue[u(CHANNEL_ROW * channel + LAST)]
    if last >= 0 and not precedes(since, keys, last, transfer):
        root = channel_queue[u(CHANNEL_ROW * channel + HEAP)]
        channel_queue[u(CHANNEL_ROW * channel + HEAP)] = heap_insert(
            links, since, keys, root, transfer
        )
        return
    links[u(2 * transfer + NEXT)] = -1
    channel_queue[u(CHANNEL_ROW * channel + LAST)] = transfer
    if last >= 0:
        links[u(2 * last + NEXT)] = transfer
    else:
        channel_queue[u(CHANNEL_ROW * channel + FIRST)] = transfer


@allocation_free
def next_transfer(
    channel_queue: Int32s, since: Floats, links: Int32s, keys: Int32s, channel: int
) -> int:  # pragma: no cover
    """Takes the first transfer out of a channel's queue; -1 if there is none."""
    first, root = (
        channel_queue[u(CHANNEL_ROW * channel + FIRST)],
        channel_queue[u(CHANNEL_ROW * channel + HEAP)],
    )
    if root >= 0 and (first < 0 or precedes(since, keys, root, first)):
        channel_queue[u(CHANNEL_ROW * channel + HEAP)] = heap_rest(links, since, keys, root)
        return root
    if first >= 0:
        channel_queue[u(CHANNEL_ROW * channel + FIRST)] = links[u(2 * first + NEXT)]
        if links[u(2 * first + NEXT)] < 0:
            channel_queue[u(CHANNEL_ROW * channel + LAST)] = -1
    return first


@allocation_free
def push(
    times: Floats, codes: Int32s, size: int, time: float, code: int
) -> int:  # pragma: no cover
    """Adds an event to a binary heap of `size` events; returns the size after."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[u(parent)] <= time:
            break
        times[u(hole)], codes[u(hole)] = times[u(parent)], codes[u(parent)]
        hole = parent
    times[u(hole)], codes[u(hole)] = time, code
    return size + 1


@allocation_free
def pop(times: Floats, codes: Int32s, size: int) -> int:  # pragma: no cover
    """Removes the earliest of `size` events, which is at index 0; returns the size after."""
    size -= 1
    time, code = times[u(size)], codes[u(size)]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and times[child + 1] < times[u(child)]:
            child += 1
        if times[u(child)] >= time:
            break
        times[u(hole)], codes[u(hole)] = times[u(child)], codes[u(child)]
        hole = child
    times[u(hole)], codes[u(hole)] = time, code
    return size
