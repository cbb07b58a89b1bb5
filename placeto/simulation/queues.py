"""The queues of the simulation kernel: ready ops, requested transfers, events.

Ops wait for a device, and transfers for a channel, in the order of (instant, first key, second
key). Instants only grow, so nearly every item belongs at the end: it goes into a plain first-in
first-out list. The few that do not (many things at one instant) go into a pairing heap (Fredman,
Sedgewick, Sleator & Tarjan 1986), so that no input makes a queue slow. The next item is the lesser
of the two firsts.
"""

from numba import njit

from placeto.graph import Floats
from placeto.simulation.compiled import Int32s

# Columns of `State.device_queue`: two positions in the device's row of `State.ready`, the heap's
# root, the op that runs, the next source; -1 for none.
HEAD, TAIL, ROOT, RUNNING, SOURCE = range(5)
# Columns of `State.channel_queue`: ends of the list, the heap's root, the transfer of the tensor at
# hand, and whether the channel will be looked at: -1 not, 0 by an event, 1 at this instant.
FIRST, LAST, HEAP, AT_HAND, WAKES = range(5)
# Columns of links.
CHILD, NEXT = range(2)

# Without reference counting, which is most of what calling these would cost; they keep no array.
lean = njit(cache=True, _nrt=False)


@lean
def precedes(since: Floats, keys: Int32s, item: int, other: int) -> bool:  # pragma: no cover
    """Whether an item comes before another in a queue.

    Args:
        since: (num_items,) when each began to wait, in seconds.
        keys: (num_items, 2) what orders the items of one instant.
        item: one.
        other: another.
    """
    if since[item] != since[other]:
        return since[item] < since[other]
    if keys[item, 0] != keys[other, 0]:
        return keys[item, 0] < keys[other, 0]
    return keys[item, 1] < keys[other, 1]


@lean
def meld(links: Int32s, since: Floats, keys: Int32s, a: int, b: int) -> int:  # pragma: no cover
    """Joins two heaps, of roots `a` and `b`; returns the root."""
    if a < 0:
        return b
    if precedes(since, keys, b, a):
        a, b = b, a
    links[b, NEXT] = links[a, CHILD]
    links[a, CHILD] = b
    return a


@lean
def heap_insert(
    links: Int32s, since: Floats, keys: Int32s, root: int, item: int
) -> int:  # pragma: no cover
    """Adds an item to the heap of `root`, -1 for an empty one; returns the root."""
    links[item, CHILD] = -1
    links[item, NEXT] = -1
    return meld(links, since, keys, root, item)


@lean
def heap_rest(links: Int32s, since: Floats, keys: Int32s, root: int) -> int:  # pragma: no cover
    """The root of a heap after its root is taken out; -1 if nothing is left."""
    pairs = -1
    child = links[root, CHILD]
    while child >= 0:
        other = links[child, NEXT]
        rest = -1 if other < 0 else links[other, NEXT]
        joined = child if other < 0 else meld(links, since, keys, child, other)
        links[joined, NEXT] = pairs
        pairs = joined
        child = rest
    rest = -1
    while pairs >= 0:
        following = links[pairs, NEXT]
        rest = meld(links, since, keys, rest, pairs)
        pairs = following
    return rest


@lean
def enqueue(
    device_queue: Int32s,
    ready: Int32s,
    since: Floats,
    links: Int32s,
    keys: Int32s,
    device: int,
    op: int,
    now: float,
) -> None:  # pragma: no cover
    """Adds an op that is ready at `now` to its device's queue.

    Args:
        device_queue: (num_devices, 5) changed.
        ready: (num_devices, num_kept) ops in order; changed.
        since: (num_kept,) seconds; changed.
        links: (num_kept, 2) of the heaps; changed.
        keys: (num_kept, 2) each op's own number.
        device: which queue.
        op: what to add.
        now: seconds.
    """
    since[op] = now
    tail = device_queue[device, TAIL]
    if tail > device_queue[device, HEAD] and not precedes(since, keys, ready[device, tail - 1], op):
        root = device_queue[device, ROOT]
        device_queue[device, ROOT] = heap_insert(links, since, keys, root, op)
        return
    ready[device, tail] = op
    device_queue[device, TAIL] = tail + 1


@lean
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
    last = channel_queue[channel, LAST]
    if last >= 0 and not precedes(since, keys, last, transfer):
        root = channel_queue[channel, HEAP]
        channel_queue[channel, HEAP] = heap_insert(links, since, keys, root, transfer)
        return
    links[transfer, NEXT] = -1
    channel_queue[channel, LAST] = transfer
    if last >= 0:
        links[last, NEXT] = transfer
    else:
        channel_queue[channel, FIRST] = transfer


@lean
def next_transfer(
    channel_queue: Int32s, since: Floats, links: Int32s, keys: Int32s, channel: int
) -> int:  # pragma: no cover
    """Takes the first transfer out of a channel's queue; -1 if there is none."""
    first, root = channel_queue[channel, FIRST], channel_queue[channel, HEAP]
    if root >= 0 and (first < 0 or precedes(since, keys, root, first)):
        channel_queue[channel, HEAP] = heap_rest(links, since, keys, root)
        return root
    if first >= 0:
        channel_queue[channel, FIRST] = links[first, NEXT]
        if links[first, NEXT] < 0:
            channel_queue[channel, LAST] = -1
    return first


@lean
def push(
    times: Floats, codes: Int32s, size: int, time: float, code: int
) -> int:  # pragma: no cover
    """Adds an event to a binary heap of `size` events; returns the size after."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[parent] <= time:
            break
        times[hole], codes[hole] = times[parent], codes[parent]
        hole = parent
    times[hole], codes[hole] = time, code
    return size + 1


@lean
def pop(times: Floats, codes: Int32s, size: int) -> int:  # pragma: no cover
    """Removes the earliest of `size` events, which is at index 0; returns the size after."""
    size -= 1
    time, code = times[size], codes[size]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[hole], codes[hole] = times[child], codes[child]
        hole = child
    times[hole], codes[hole] = time, code
    return size
