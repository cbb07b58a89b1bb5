"""What becomes of an op's outputs on the devices where they are."""

from placeto.simulation.compiled import (
    BUNDLE_ROW,
    BUNDLED,
    BYTES,
    FREES,
    HELD,
    LEFT,
    LOCAL,
    OP_WORDS,
    SLOT_ROW,
)
from placeto.simulation.queues import DEVICE_ROW, MEMORY, ReadyQueues, enqueue, u
from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.jit import inner


@inner(cache=True, _nrt=False, forceinline=True)
def finish_in_group(
    op_rows: Int32s,
    op_bytes: Ints,
    held: Int32s,
    holder_slot: Int32s,
    slots: Ints,
    num_slots: int,
    local: Int32s,
    missing: Int32s,
    queues: ReadyQueues,
    ready_since: Floats,
    device: int,
    op: int,
    now: float,
) -> None:  # pragma: no cover
    """Frees what an op held, and hands its outputs to its group; the fields as in `advance`."""
    device_ints = queues[0]
    row = 2 * OP_WORDS * op
    ends = row + 2 * OP_WORDS
    # Temporary memory, and inputs that nobody else needs.
    freed = op_bytes[u(OP_WORDS * op + FREES)]
    for entry in range(op_rows[u(row + HELD)], op_rows[u(ends + HELD)]):
        slot = held[u(entry)]
        if slot >= num_slots:
            slot = holder_slot[u(slot - num_slots)]
        slots[u(SLOT_ROW * slot + LEFT)] -= 1
        if slots[u(SLOT_ROW * slot + LEFT)] == 0:
            freed += slots[u(SLOT_ROW * slot + BYTES)]
    device_ints[u(DEVICE_ROW * device + MEMORY)] -= freed
    for entry in range(op_rows[u(row + LOCAL)], op_rows[u(ends + LOCAL)]):
        consumer = local[u(entry)]
        missing[u(consumer)] -= 1
        if missing[u(consumer)] == 0:
            enqueue(queues, ready_since, device, consumer, now)


@inner(cache=True, _nrt=False, forceinline=True)
def hand_to_bundle(
    bundle_rows: Int32s,
    bundled: Int32s,
    missing: Int32s,
    queues: ReadyQueues,
    ready_since: Floats,
    device: int,
    bundle: int,
    now: float,
) -> None:  # pragma: no cover
    """Hands a tensor that is on a device to its consumers there; the fields as in `advance`."""
    row = BUNDLE_ROW * bundle
    for entry in range(bundle_rows[u(row + BUNDLED)], bundle_rows[u(row + BUNDLE_ROW + BUNDLED)]):
        consumer = bundled[u(entry)]
        missing[u(consumer)] -= 1
        if missing[u(consumer)] == 0:
            enqueue(queues, ready_since, device, consumer, now)
