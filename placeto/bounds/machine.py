"""One device that takes ops one at a time."""

import numpy as np

from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner, njit


@njit(cache=True)
def one_machine(release: Floats, held: Floats, delivery: Floats) -> float:  # pragma: no cover
    """Seconds until the last of some ops of one device is delivered, at the earliest.

    The device always works at the released op with the longest delivery, and leaves it when one
    with a longer delivery is released: Jackson's preemptive schedule, which no schedule beats, with
    or without preemption (Carlier 1982, EJOR 11). Its length is the largest, over sets of ops, of
    least release + all that they hold + least delivery.

    Args:
        release: (n,) seconds before which each op cannot start; finite.
        held: (n,) seconds that each holds the device.
        delivery: (n,) seconds from its end to its delivery.

    Returns:
        Seconds; minus infinity without ops.
    """
    count = len(release)
    left, soonness = held.copy(), np.empty(count)
    coming, released = np.empty(count, np.int64), np.empty(count, np.int64)
    to_come = waiting = 0
    for op in range(count):
        soonness[op] = -release[op]
        to_come = _push(coming, to_come, op, soonness)
    now = longest = -np.inf
    while to_come + waiting > 0:
        if waiting == 0:
            now = max(now, release[coming[0]])
        while to_come > 0 and release[coming[0]] <= now:
            waiting = _push(released, waiting, coming[0], delivery)
            to_come = _pop(coming, to_come, soonness)
        op = released[0]
        event = release[coming[0]] if to_come > 0 else np.inf
        if now + left[op] <= event:
            now += left[op]
            longest = max(longest, now + delivery[op])
            waiting = _pop(released, waiting, delivery)
        else:
            left[op] -= event - now
            now = event
    return longest


@inner(cache=True)
def _push(heap: Ints, size: int, op: int, rank: Floats) -> int:  # pragma: no cover
    """Adds an op to a heap with the highest rank first; returns the new size."""
    hole = size
    while hole > 0 and rank[heap[(hole - 1) // 2]] < rank[op]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = op
    return size + 1


@inner(cache=True)
def _pop(heap: Ints, size: int, rank: Floats) -> int:  # pragma: no cover
    """Takes the first op off a heap; returns the new size."""
    last = heap[size - 1]
    hole = 0
    while 2 * hole + 1 < size - 1:
        child = 2 * hole + 1
        if child + 1 < size - 1 and rank[heap[child + 1]] > rank[heap[child]]:
            child += 1
        if rank[heap[child]] <= rank[last]:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = last
    return size - 1
