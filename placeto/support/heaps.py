"""Binary heaps of events, in compiled code: an event is a time and a code."""

import numpy as np

from placeto.support.arrays import Floats, Int32s
from placeto.support.jit import inner

# An index that is known not to be negative: numba then spares itself the check.
u = np.uint64

# Without reference counting, which is most of what calling these would cost; they keep no array.
allocation_free = inner(cache=True, _nrt=False)
expanded = inner(cache=True, _nrt=False, forceinline=True)


@allocation_free
def push(times: Floats, codes: Int32s, size: int, time: float, code: int) -> int:
    """Adds an event to a binary heap of `size` events; returns the size after.

    Of events of one time that with the lowest code is the earliest.
    """
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[u(parent)] < time or (times[u(parent)] == time and codes[u(parent)] < code):
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
        other = child + 1
        if other < size and (
            times[u(other)] < times[u(child)]
            or (times[u(other)] == times[u(child)] and codes[u(other)] < codes[u(child)])
        ):
            child = other
        if times[u(child)] > time or (times[u(child)] == time and codes[u(child)] > code):
            break
        times[u(hole)], codes[u(hole)] = times[u(child)], codes[u(child)]
        hole = child
    times[u(hole)], codes[u(hole)] = time, code
    return size
