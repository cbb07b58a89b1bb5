"""What both kernels do at an instant: how ops end and begin, and how tensors leave and arrive."""

import numpy as np

from placeto.simulation.queues import ReadyQueues, hand_over, heap_rest
from placeto.simulation.records import (
    Bundles,
    Channels,
    Copies,
    Crossings,
    Devices,
    Links,
    Ops,
    Slots,
    Sources,
    Transfers,
    Waiting,
)
from placeto.support.arrays import Bools, Floats, Int16s, Int32s, Ints
from placeto.support.heaps import expanded, u

NONE, CONSTANTS = -1, -2  # in the place of an op


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


Routes = tuple[Crossings, Bundles, Int32s, Int16s, Ints, Bools]
"""`crossings`, `bundles`, `bundled`, `device_of`, `channel_between` and `multicast`."""
Carried = tuple[Links, Slots, Int32s, Copies, Channels, Transfers, Waiting]
"""`links`, `slots`, `copy_at`, `copies`, `channels`, `transfers` and `waiting`."""


@expanded
def hand_out(
    routes: Routes, carried: Carried, queues: ReadyQueues, missing: Int32s, num_slots: int,
    first_crossing: int, tensor: int, device: int, now: float, num_copies: int, num_transfers: int,
) -> tuple[int, int]:  # fmt: skip
    """Hands a tensor to other groups on its device, and makes copies and transfers for the others.

    Returns how many copies and transfers there are then. Transfers are not requested yet.
    """
    crossings, bundles, bundled, device_of, channel_between, multicast = routes
    links, slots, copy_at, copies, channels, transfers, waiting = carried
    slot = slots[u(first_crossing + tensor)]
    copies_before, transfers_before = num_copies, num_transfers
    for bundle in range(crossings[u(tensor)].bundles, crossings[u(tensor + 1)].bundles):
        read_by = bundles[u(bundle)]
        target = device_of[u(read_by.group)]
        if target == device:
            links[u(bundle)].slot = first_crossing + tensor
            slot.left += read_by.holders
            begin, end = read_by.consumers, bundles[u(bundle + 1)].consumers
            hand_over(queues, missing, bundled, begin, end, device, now)
            continue
        copy = copy_at[u(target)]
        if copy < 0:
            copy = num_copies
            num_copies += 1
            copy_at[u(target)] = copy
            copies[u(copy)].device = target
            copies[u(copy)].bundle = -1
            slots[u(num_slots + copy)].left = 0
            slots[u(num_slots + copy)].bytes = slot.bytes
            channel = channel_between[u(len(copy_at) * device + target)]
            transfer = channels[u(channel)].at_hand
            if transfer < 0 or not multicast[u(channel)]:
                # Bundles come by their lowest consumers: this is the lowest.
                transfer = num_transfers
                num_transfers += 1
                channels[u(channel)].at_hand = transfer
                new = transfers[u(transfer)]
                new.channel, new.crossing = channel, tensor
                new.copy, new.sender = -1, device
                waiting[u(transfer)].first = read_by.lowest
                waiting[u(transfer)].second = crossings[u(tensor)].tensor
                slot.left += 1
            copies[u(copy)].next = transfers[u(transfer)].copy
            transfers[u(transfer)].copy = copy
        slots[u(num_slots + copy)].left += read_by.holders
        links[u(bundle)].slot = num_slots + copy
        links[u(bundle)].next = copies[u(copy)].bundle
        copies[u(copy)].bundle = bundle
    for copy in range(copies_before, num_copies):
        copy_at[u(copies[u(copy)].device)] = -1
    for transfer in range(transfers_before, num_transfers):
        channels[u(transfers[u(transfer)].channel)].at_hand = -1
    return num_copies, num_transfers


@expanded
def deliver(
    routes: Routes, carried: Carried, queues: ReadyQueues, missing: Int32s, first_crossing: int,
    transfer: int, now: float,
) -> bool:  # fmt: skip
    """Hands over the copies of a transfer that arrives; whether one is on a device that is free."""
    bundles, bundled = routes[1], routes[2]
    links, slots, copies, transfers = carried[0], carried[1], carried[3], carried[5]
    devices = queues[0]
    arrived = transfers[u(transfer)]
    free = False
    copy = arrived.copy
    while copy >= 0:
        device = copies[u(copy)].device
        free |= devices[u(device)].free <= now
        bundle = copies[u(copy)].bundle
        while bundle >= 0:
            begin, end = bundles[u(bundle)].consumers, bundles[u(bundle + 1)].consumers
            hand_over(queues, missing, bundled, begin, end, device, now)
            bundle = links[u(bundle)].next
        copy = copies[u(copy)].next
    slot = slots[u(first_crossing + arrived.crossing)]
    slot.left -= 1
    if slot.left == 0:
        devices[u(arrived.sender)].memory -= slot.bytes
    return free


@expanded
def hold(transfers: Transfers, copies: Copies, devices: Devices, transfer: int, size: int) -> None:
    """Gives a transfer that starts memory where it goes."""
    copy = transfers[u(transfer)].copy
    while copy >= 0:
        devices[u(copies[u(copy)].device)].memory += size
        copy = copies[u(copy)].next


@expanded
def next_op(
    queues: ReadyQueues, sources: Sources, source_next: Int32s, source_start: Floats, device: int,
    now: float, ops_wanted: bool,
) -> int:  # fmt: skip
    """Takes the first op out of a device's queue, or a source: what is there from the start.

    Returns it, `NONE`, or `CONSTANTS` where it was a source of constants, whose memory is taken.
    """
    d = queues[0][u(device)]
    ready, waiting_ops = queues[1], queues[2]
    head, root = d.head, d.root
    op: int = ready[u(head)] if head < d.tail else NONE
    heaped = root >= 0 and (op < 0 or (head >= d.latest and root < op))
    if heaped:
        op = root
    # Whether the op was ready at 0.
    first = d.latest_at == 0 or (not heaped and head < d.first_tail)
    source = d.source
    if source >= 0 and (op < 0 or not first or op >= sources[u(source)].rank):
        d.source = source_next[u(source)]
        if ops_wanted:
            source_start[u(source)] = now
        op = sources[u(source)].op
        if op < 0:
            d.memory += sources[u(source)].bytes
            op = CONSTANTS
    elif heaped:
        d.root = heap_rest(waiting_ops, root)
    elif op >= 0:
        d.head = head + 1
    return op
