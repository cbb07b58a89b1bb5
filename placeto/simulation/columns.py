"""Columns of the rows that the kernel reads and writes, and how long rows are.

Rows lie flat, one after the other, so that for numba's `njit` an index is a product with a constant
and a row is in one cache line.
"""

REMAINING, NUM_COPIES, NUM_TRANSFERS, NUM_EVENTS = range(4)  # `State.counts`

# Of `Compiled.op_rows`, `op_bytes`, `slots`, `crossing_rows`, `bundle_rows` and `source_rows`, and
# of `State.copies` and `transfers`; a first column of the next row ends what it begins.
LOCAL, CROSSES, HELD, GROUP = range(4)
ALLOCATES, FREES = range(2, 4)
LEFT, BYTES = range(2)
FIRST_BUNDLE, TENSOR = range(2)
BUNDLED, TO_GROUP, LOWEST, HOLDERS = range(4)
SOURCE_OP, RANK, SOURCE_GROUP = range(3)
BUNDLE, NEXT_COPY, ON_DEVICE = range(3)
CHANNEL, CROSSING, COPY, SENDER = range(4)
OP_WORDS = 4  # of 64 bits
SLOT_ROW, CROSSING_ROW, BUNDLE_ROW, SOURCE_ROW, COPY_ROW, TRANSFER_ROW = 2, 2, 4, 3, 4, 4

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
