"""The records that code compiled by `njit` reads and writes in a simulation.

What is used together is in one record, and so in one cache line, or two.
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

_SHORT, _LONG, _REAL = np.int32, np.int64, np.float64


def _record(*fields: tuple[str, type], size: int | None = None) -> np.dtype[Any]:
    names, formats = zip(*fields, strict=True)
    whole: Any = {"names": names, "formats": formats} | ({"itemsize": size} if size else {})
    return np.dtype(whole, align=True)


# Of a problem. What a row says is the first of something ends where the next row says.
OP = _record(
    ("local", _SHORT),  # first consumer in its own group
    ("crosses", _SHORT),  # first crossing tensor that it makes
    ("held", _SHORT),  # first holder that ends with it
    ("group", _SHORT),
    ("allocates", _LONG),  # bytes, at the start
    ("frees", _LONG),  # bytes, at the finish
)
SLOT = _record(
    ("left", _LONG),  # holders; at first those in the producer's own group
    ("bytes", _LONG),
)
CROSSING = _record(
    ("bundles", _SHORT),  # first bundle
    ("tensor", _SHORT),  # of the graph
)
BUNDLE = _record(
    ("consumers", _SHORT),  # first consumer
    ("group", _SHORT),  # that reads it
    ("lowest", _SHORT),  # consumer
    ("holders", _SHORT),  # how many
)
SOURCE = _record(
    ("op", _SHORT),  # or -1 for constants
    ("rank", _SHORT),  # ops kept before it
    ("group", _SHORT),
    ("bytes", _LONG),  # what constants allocate
)

# Of a state. Times are in seconds; -1 stands for none.
STATUS = _record(
    ("now", _REAL),  # the last instant
    ("instant", _LONG),  # number of the one at hand, or else of the next
    ("remaining", _LONG),  # ops that have not finished
    ("num_copies", _LONG),
    ("num_transfers", _LONG),
    ("num_events", _LONG),
)
DEVICE = _record(
    # Positions in its row of `State.ready`.
    ("head", _LONG),  # the next op
    ("tail", _LONG),  # the end
    ("latest", _LONG),  # the first op of the last instant
    ("first_tail", _LONG),  # the end of those of instant 0
    ("root", _LONG),  # of the heap of ops
    ("running", _LONG),  # op
    ("source", _LONG),  # the next one
    ("kind", _LONG),  # column of the op times
    ("memory", _LONG),  # bytes in use
    ("peak", _LONG),  # bytes
    ("next_time", _REAL),  # when its op finishes or it becomes free, or infinite
    ("free", _REAL),  # from when on it may start an op
    ("latest_at", _REAL),  # the last instant at which an op became ready
    ("carries_until", _REAL),  # until when it sends or receives what it was given so far
    size=128,
)
CHANNEL = _record(
    ("free", _REAL),  # from when on it may start a transfer
    ("first", _SHORT),  # of the list of transfers
    ("last", _SHORT),
    ("root", _SHORT),  # of the heap of transfers
    ("at_hand", _SHORT),  # the transfer of the tensor at hand
    ("wakes", _SHORT),  # whether it will be looked at: -1 not, 0 by an event, 1 at this instant
)
LINK = _record(
    ("slot", _SHORT),  # that a bundle holds
    ("next", _SHORT),  # bundle of the same copy
)
COPY = _record(
    ("bundle", _SHORT),  # first one
    ("next", _SHORT),  # copy of its transfer
    ("device", _SHORT),
)
TRANSFER = _record(
    ("sent", _REAL),  # when it starts
    ("channel", _SHORT),
    ("crossing", _SHORT),  # tensor
    ("copy", _SHORT),  # first one
    ("sender", _SHORT),  # device
)
PART = _record(
    ("asked", _REAL),  # when the transfer was requested
    ("began", _REAL),  # when its first part started, or -1
    ("sent", _REAL),  # when its last byte has left the last part that has started
    ("done", _REAL),  # when that part is over
    ("receives", _REAL),  # seconds that it costs to receive
    ("bytes", _LONG),
    ("at", _SHORT),  # the next part: of the links the first is 0, then to receive, and arrived
    ("links", _SHORT),  # how many it goes over; a channel without a path is one
)
WAITING = _record(
    ("since", _REAL),
    ("first", _SHORT),  # key
    ("second", _SHORT),  # key
    ("child", _SHORT),  # in a heap
    ("next", _SHORT),  # in a heap or a list
)

# Types of arrays of these.
Ops = Annotated[NDArray[Any], OP]
Slots = Annotated[NDArray[Any], SLOT]
Crossings = Annotated[NDArray[Any], CROSSING]
Bundles = Annotated[NDArray[Any], BUNDLE]
Sources = Annotated[NDArray[Any], SOURCE]
Status = Annotated[NDArray[Any], STATUS]
Devices = Annotated[NDArray[Any], DEVICE]
Channels = Annotated[NDArray[Any], CHANNEL]
Links = Annotated[NDArray[Any], LINK]
Copies = Annotated[NDArray[Any], COPY]
Transfers = Annotated[NDArray[Any], TRANSFER]
Parts = Annotated[NDArray[Any], PART]
Waiting = Annotated[NDArray[Any], WAITING]
