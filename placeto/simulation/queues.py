"""The queues of the simulation kernel: ready ops and requested transfers.

Ops wait for a device, and transfers for a channel, in the order of (instant, first key, second
key). Instants only grow, so nearly every item belongs at the end: it goes into a plain first-in
first-out list. The few that do not (many things at one instant) go into a pairing heap (Fredman,
Sedgewick, Sleator & Tarjan 1986), so that no input makes a queue slow. The next item is the lesser
of the two firsts.

With ranks, ops wait in the order of (rank, instant, number): those of each rank in a heap of their
own. Which ranks have any is told by bits, and which words of these are not 0 by bits of their own.
"""

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from placeto.simulation.records import Channels, Devices, Status, Waiting
from placeto.support.arrays import Int32s, Words
from placeto.support.heaps import allocation_free, expanded, u

ReadyQueues = (
    tuple[Devices, Int32s, Waiting] | tuple[Devices, Int32s, Waiting, Int32s, Words, Status]
)
"""`devices` (num_devices,), `ready` (num_devices, num_kept) ops in order, and the rest of each
queue, (num_kept,) of which all began to wait at one instant; keys are each op's own number. Where
there may be ranks: these, (num_kept,) or (0,), `turns` (see `enqueue_by_rank`), and the status that
counts instants. Then `ready` has the roots of each rank's heap."""


@allocation_free
def precedes(waiting: Waiting, item: int, other: int) -> bool:
    """Whether an item comes before another in a queue."""
    a, b = waiting[u(item)], waiting[u(other)]
    if a.since != b.since:
        return a.since < b.since
    if a.first != b.first:
        return a.first < b.first
    return a.second < b.second


@allocation_free
def meld(waiting: Waiting, a: int, b: int) -> int:
    """Joins two heaps, of roots `a` and `b`; returns the root."""
    if a < 0:
        return b
    if precedes(waiting, b, a):
        a, b = b, a
    waiting[u(b)].next = waiting[u(a)].child
    waiting[u(a)].child = b
    return a


@allocation_free
def heap_insert(waiting: Waiting, root: int, item: int) -> int:
    """Adds an item to the heap of `root`, -1 for an empty one; returns the root."""
    waiting[u(item)].child = -1
    waiting[u(item)].next = -1
    return meld(waiting, root, item)


@allocation_free
def heap_rest(waiting: Waiting, root: int) -> int:
    """The root of a heap after its root is taken out; -1 if nothing is left."""
    pairs = -1
    child = waiting[u(root)].child
    while child >= 0:
        other = waiting[u(child)].next
        rest = -1 if other < 0 else waiting[u(other)].next
        joined = child if other < 0 else meld(waiting, child, other)
        waiting[u(joined)].next = pairs
        pairs = joined
        child = rest
    rest = -1
    while pairs >= 0:
        following = waiting[u(pairs)].next
        rest = meld(waiting, rest, pairs)
        pairs = following
    return rest


@expanded
def enqueue(queues: ReadyQueues, device: int, op: int, now: float) -> None:
    """Adds an op that is ready at `now` to its device's queue."""
    devices, ready, waiting = queues[0], queues[1], queues[2]
    d = devices[u(device)]
    if len(queues) > 3 and len(queues[3]) > 0:  # numba knows the first when it compiles
        enqueue_by_rank(ready, waiting, queues[3], queues[4], device, op, queues[5][0].instant)
        return
    tail = d.tail
    if d.latest_at != now:
        if d.root >= 0:
            tail = heap_to_list(queues, device)
        if d.latest_at == 0:
            d.first_tail = tail
        d.latest = tail
        d.latest_at = now
    elif tail > d.head and ready[u(tail - 1)] > op:
        d.root = heap_insert(waiting, d.root, op)
        return
    ready[u(tail)] = op
    d.tail = tail + 1


@expanded
def turn_words(num_ranked: int) -> tuple[int, int]:
    """How many words there are on each device of bits for ranks, and of bits for those words."""
    words = (num_ranked + 63) // 64
    return words, (words + 63) // 64


@allocation_free
def enqueue_by_rank(
    ready: Int32s, waiting: Waiting, ranks: Int32s, turns: Words, device: int, op: int, instant: int
) -> None:
    """Adds an op to its device's queue; instants are numbered.

    Of each device, `turns` has a bit for each rank, and then one for each word of these.
    """
    words, above = turn_words(len(ranks))
    rank = ranks[u(op)]
    place, begin, word = device * len(ranks) + rank, device * (words + above), rank >> 6
    bit = np.uint64(1) << u(rank & 63)
    root = ready[u(place)] if turns[u(begin + word)] & bit else -1
    waiting[u(op)].first = instant
    ready[u(place)] = heap_insert(waiting, root, op)
    turns[u(begin + word)] |= bit
    turns[u(begin + words + (word >> 6))] |= np.uint64(1) << u(word & 63)


@allocation_free
def next_by_rank(ready: Int32s, waiting: Waiting, ranks: Int32s, turns: Words, device: int) -> int:
    """Takes the first op out of a device's queue; -1 if there is none."""
    words, above = turn_words(len(ranks))
    begin = device * (words + above)
    for index in range(above):
        found = turns[u(begin + words + index)]
        if found == 0:
            continue
        word = 64 * index + np.int64(trailing_zeros(found))
        bits = turns[u(begin + word)]
        rank = 64 * word + np.int64(trailing_zeros(bits))
        place = device * len(ranks) + rank
        op = ready[u(place)]
        rest = heap_rest(waiting, op)
        if rest >= 0:
            ready[u(place)] = rest
            return op
        turns[u(begin + word)] = bits & (bits - np.uint64(1))
        if turns[u(begin + word)] == 0:
            turns[u(begin + words + index)] = found & (found - np.uint64(1))
        return op
    return -1


@allocation_free
def heap_to_list(queues: ReadyQueues, device: int) -> int:
    """Merges the heap of a device's queue with the list's ops of the same instant.

    Returns the end of the list after; see `enqueue`.
    """
    devices, ready, waiting = queues[0], queues[1], queues[2]
    d = devices[u(device)]
    begin: int = max(d.latest, d.head)
    root: int = d.root
    for position in range(begin, d.tail):
        root = heap_insert(waiting, root, ready[u(position)])
    tail = begin
    while root >= 0:
        ready[u(tail)] = root
        tail += 1
        root = heap_rest(waiting, root)
    d.root = -1
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
def request(channels: Channels, waiting: Waiting, channel: int, transfer: int) -> None:
    """Adds a transfer to its channel's queue; its keys are the lowest consumer and the tensor."""
    queue = channels[u(channel)]
    last = queue.last
    if last >= 0 and not precedes(waiting, last, transfer):
        queue.root = heap_insert(waiting, queue.root, transfer)
        return
    waiting[u(transfer)].next = -1
    queue.last = transfer
    if last >= 0:
        waiting[u(last)].next = transfer
    else:
        queue.first = transfer


@allocation_free
def next_transfer(channels: Channels, waiting: Waiting, channel: int) -> int:
    """Takes the first transfer out of a channel's queue; -1 if there is none."""
    queue = channels[u(channel)]
    first, root = queue.first, queue.root
    if root >= 0 and (first < 0 or precedes(waiting, root, first)):
        queue.root = heap_rest(waiting, root)
        return root
    if first >= 0:
        queue.first = waiting[u(first)].next
        if queue.first < 0:
            queue.last = -1
    return first
