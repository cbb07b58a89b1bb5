"""The queues of the simulation kernel: ready ops, requested transfers, events.

Ops wait for a device, and transfers for a channel, in the order of (instant, first key, second
key). Instants only grow, so nearly every item belongs at the end: it goes into a plain first-in
first-out list. The few that do not (many things at one instant) go into a pairing heap (Fredman,
Sedgewick, Sleator & Tarjan 1986), so that no input makes a queue slow. The next item is the lesser
of the two firsts.
"""

import numpy as np

from placeto.simulation import columns as col
from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.jit import inner

Heap = tuple[Int32s, Floats, Int32s]
"""Items (num_items,) in heaps: links (…, 2); when each began to wait, in seconds; keys (…, 2)."""
ReadyQueues = tuple[Ints, Floats, Int32s, Heap]
"""`device_ints` and `device_reals` (num_devices, 16), `ready` (num_devices, num_kept) ops in order,
and the rest of each queue, of which all began at one instant; keys are each op's own number."""

# An index that is known not to be negative: numba then spares itself the check.
u = np.uint64

# Without reference counting, which is most of what calling these would cost; they keep no array.
allocation_free = inner(cache=True, _nrt=False)
expanded = inner(cache=True, _nrt=False, forceinline=True)


@allocation_free
def precedes(heap: Heap, item: int, other: int) -> bool:
    """Whether an item comes before another in a queue."""
    _, since, keys = heap
    if since[u(item)] != since[u(other)]:
        return since[u(item)] < since[u(other)]
    if keys[u(2 * item + 0)] != keys[u(2 * other + 0)]:
        return keys[u(2 * item + 0)] < keys[u(2 * other + 0)]
    return keys[u(2 * item + 1)] < keys[u(2 * other + 1)]


@allocation_free
def meld(heap: Heap, a: int, b: int) -> int:
    """Joins two heaps, of roots `a` and `b`; returns the root."""
    links, _, _ = heap
    if a < 0:
        return b
    if precedes(heap, b, a):
        a, b = b, a
    links[u(2 * b + col.NEXT)] = links[u(2 * a + col.CHILD)]
    links[u(2 * a + col.CHILD)] = b
    return a


@allocation_free
def heap_insert(heap: Heap, root: int, item: int) -> int:
    """Adds an item to the heap of `root`, -1 for an empty one; returns the root."""
    links, _, _ = heap
    links[u(2 * item + col.CHILD)] = -1
    links[u(2 * item + col.NEXT)] = -1
    return meld(heap, root, item)


@allocation_free
def heap_rest(heap: Heap, root: int) -> int:
    """The root of a heap after its root is taken out; -1 if nothing is left."""
    links, _, _ = heap
    pairs = -1
    child = links[u(2 * root + col.CHILD)]
    while child >= 0:
        other = links[u(2 * child + col.NEXT)]
        rest = -1 if other < 0 else links[u(2 * other + col.NEXT)]
        joined = child if other < 0 else meld(heap, child, other)
        links[u(2 * joined + col.NEXT)] = pairs
        pairs = joined
        child = rest
    rest = -1
    while pairs >= 0:
        following = links[u(2 * pairs + col.NEXT)]
        rest = meld(heap, rest, pairs)
        pairs = following
    return rest


@expanded
def enqueue(queues: ReadyQueues, device: int, op: int, now: float) -> None:
    """Adds an op that is ready at `now` to its device's queue."""
    device_ints, device_reals, ready, heap = queues
    at = col.DEVICE_ROW * device
    tail, root = device_ints[u(at + col.TAIL)], device_ints[u(at + col.ROOT)]
    if device_reals[u(at + col.LATEST_AT)] != now:
        if root >= 0:
            tail = heap_to_list(queues, device)
        if device_reals[u(at + col.LATEST_AT)] == 0:
            device_ints[u(at + col.FIRST_TAIL)] = tail
        device_ints[u(at + col.LATEST)] = tail
        device_reals[u(at + col.LATEST_AT)] = now
    elif tail > device_ints[u(at + col.HEAD)] and ready[u(tail - 1)] > op:
        device_ints[u(at + col.ROOT)] = heap_insert(heap, root, op)
        return
    ready[u(tail)] = op
    device_ints[u(at + col.TAIL)] = tail + 1


@allocation_free
def heap_to_list(queues: ReadyQueues, device: int) -> int:
    """Merges the heap of a device's queue with the list's ops of the same instant.

    Returns the end of the list after; see `enqueue`.
    """
    device_ints, _, ready, heap = queues
    at = col.DEVICE_ROW * device
    begin = max(device_ints[u(at + col.LATEST)], device_ints[u(at + col.HEAD)])
    root: int = device_ints[u(at + col.ROOT)]
    for position in range(begin, device_ints[u(at + col.TAIL)]):
        root = heap_insert(heap, root, ready[u(position)])
    tail: int = begin
    while root >= 0:
        ready[u(tail)] = root
        tail += 1
        root = heap_rest(heap, root)
    device_ints[u(at + col.ROOT)] = -1
    return tail


@expanded
def hand_over(
    queues: ReadyQueues, missing: Int32s, ops: Int32s, begin: int, end: int, device: int, now: float
) -> None:
    """Hands a tensor that is on a device to some of its consumers, those from `begin` to `end`."""
    for entry in range(begin, end):
        op = ops[u(entry)]
        missing[u(op)] -= 1
        if missing[u(op)] == 0:
            enqueue(queues, device, op, now)


@allocation_free
def request(channel_queue: Int32s, heap: Heap, channel: int, transfer: int) -> None:
    """Adds a transfer to its channel's queue; its keys are the lowest consumer and the tensor."""
    links, _, _ = heap
    at = col.CHANNEL_ROW * channel
    last = channel_queue[u(at + col.LAST)]
    if last >= 0 and not precedes(heap, last, transfer):
        channel_queue[u(at + col.HEAP)] = heap_insert(
            heap, channel_queue[u(at + col.HEAP)], transfer
        )
        return
    links[u(2 * transfer + col.NEXT)] = -1
    channel_queue[u(at + col.LAST)] = transfer
    if last >= 0:
        links[u(2 * last + col.NEXT)] = transfer
    else:
        channel_queue[u(at + col.FIRST)] = transfer


@allocation_free
def next_transfer(channel_queue: Int32s, heap: Heap, channel: int) -> int:
    """Takes the first transfer out of a channel's queue; -1 if there is none."""
    links, _, _ = heap
    at = col.CHANNEL_ROW * channel
    first, root = channel_queue[u(at + col.FIRST)], channel_queue[u(at + col.HEAP)]
    if root >= 0 and (first < 0 or precedes(heap, root, first)):
        channel_queue[u(at + col.HEAP)] = heap_rest(heap, root)
        return root
    if first >= 0:
        channel_queue[u(at + col.FIRST)] = links[u(2 * first + col.NEXT)]
        if links[u(2 * first + col.NEXT)] < 0:
            channel_queue[u(at + col.LAST)] = -1
    return first


@allocation_free
def push(times: Floats, codes: Int32s, size: int, time: float, code: int) -> int:
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
def pop(times: Floats, codes: Int32s, size: int) -> int:
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
