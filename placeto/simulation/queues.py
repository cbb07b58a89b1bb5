"""The queues of the simulation kernel: a heap of events, and lists of what waits."""

import numpy as np
from numba import njit

from placeto.graph import Floats, Ints


@njit(cache=True)
def push(times: Floats, codes: Ints, size: int, time: float, code: int) -> int:  # pragma: no cover
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


@njit(cache=True)
def pop(times: Floats, codes: Ints, size: int) -> int:  # pragma: no cover
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


@njit(cache=True)
def enqueue(
    ends: Ints, links: Ints, since: Floats, keys: Ints, queue: int, item: int
) -> None:  # pragma: no cover
    """Adds an item to a queue in the order of (since, first key, second key).

    Queues are doubly linked lists through the items themselves. Instants only grow, so a new
    item belongs at the tail, and moves forward only past items of the same instant.

    Args:
        ends: (num_queues, 2) first and last item of each queue; -1 for none.
        links: (num_items, 2) the item before and the item after.
        since: (num_items,) when the item began to wait, in seconds.
        keys: (num_items, 2) what orders the items of one instant.
        queue: which queue.
        item: what to add.
    """
    before = ends[queue, 1]
    while before >= 0 and since[before] == since[item]:
        if keys[before, 0] < keys[item, 0]:
            break
        if keys[before, 0] == keys[item, 0] and keys[before, 1] < keys[item, 1]:
            break
        before = links[before, 0]
    links[item, 0] = before
    if before >= 0:
        links[item, 1] = links[before, 1]
        links[before, 1] = item
    else:
        links[item, 1] = ends[queue, 0]
        ends[queue, 0] = item
    if links[item, 1] >= 0:
        links[links[item, 1], 0] = item
    else:
        ends[queue, 1] = item


@njit(cache=True)
def dequeue(ends: Ints, links: Ints, queue: int) -> int:  # pragma: no cover
    """Removes and returns the first item of a queue that is not empty."""
    item: int = ends[queue, 0]
    ends[queue, 0] = links[item, 1]
    if ends[queue, 0] >= 0:
        links[ends[queue, 0], 0] = -1
    else:
        ends[queue, 1] = -1
    return item


def empty_ends(num_queues: int) -> Ints:
    """Ends of queues that hold nothing, (num_queues, 2)."""
    return np.full((num_queues, 2), -1, dtype=np.int64)
