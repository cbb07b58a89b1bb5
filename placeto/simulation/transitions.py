"""What every kernel does at an instant: a device's next instant, and an op that ends."""

import numpy as np

from placeto.simulation.queues import ReadyQueues, hand_over
from placeto.simulation.records import Devices, Links, Ops, Slots
from placeto.support.arrays import Int32s
from placeto.support.heaps import expanded, u


@expanded
def arrive(devices: Devices, device: int, now: float) -> tuple[int, bool]:
    """Takes a device to its next instant: how many ops finish there, and whether it is free."""
    d = devices[u(device)]
    finished = 1 if d.running >= 0 else 0
    if finished == 1 and d.free > now:
        d.next_time = d.free
        return finished, False
    d.next_time = np.inf
    return finished, True


Fields = tuple[Ops, Int32s, Links, Slots, Int32s, Int32s]
"""`ops`, `held`, `links`, `slots`, `local` and `missing`."""


@expanded
def finish_in_group(
    fields: Fields, num_slots: int, queues: ReadyQueues, device: int, op: int, now: float
) -> None:
    """Frees what an op held, and hands its outputs to its group."""
    ops, held, links, slots, local, missing = fields
    devices = queues[0]
    own, following = ops[u(op)], ops[u(op + 1)]
    # Temporary memory, and inputs that nobody else needs.
    freed = own.frees
    for entry in range(own.held, following.held):
        number = held[u(entry)]
        if number >= num_slots:
            number = links[u(number - num_slots)].slot
        slot = slots[u(number)]
        slot.left -= 1
        if slot.left == 0:
            freed += slot.bytes
    devices[u(device)].memory -= freed
    hand_over(queues, missing, local, own.local, following.local, device, now)
