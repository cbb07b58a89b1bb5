"""The event-driven simulation kernel: semantics version 1, compiled.

At every instant t the kernel does, in this order and until nothing is left to do at t:

1. all ops that finish and all transfers that arrive at t: tensors become present, ops become
   ready, transfers are requested;
2. every free channel starts its first request;
3. the lowest-numbered free device that has a ready op starts its first one, and the kernel goes
   back to 1, since an op of zero duration finishes at t itself.

This is the order in which Placeto's released simulator takes the events of one instant.
"""

import copyreg
from typing import Any

import numba
import numpy as np
from numba import types

from placeto.simulation import columns as col
from placeto.simulation.queues import (
    ReadyQueues,
    allocation_free,
    expanded,
    hand_over,
    heap_rest,
    next_transfer,
    pop,
    push,
    request,
    u,
)
from placeto.simulation.state import GROUPS, OPS, STATE, Compiled, State
from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.jit import address_of, call_at, njit


@expanded
def arrive(device_ints: Ints, device_reals: Floats, device: int, now: float) -> tuple[int, bool]:
    """Takes a device to its next instant: how many ops finish there, and whether it is free."""
    at = col.DEVICE_ROW * device
    finished = 1 if device_ints[u(at + col.RUNNING)] >= 0 else 0
    if finished == 1 and device_reals[u(at + col.FREE)] > now:
        device_reals[u(at + col.NEXT_TIME)] = device_reals[u(at + col.FREE)]
        return finished, False
    device_reals[u(at + col.NEXT_TIME)] = np.inf
    return finished, True


Fields = tuple[Int32s, Ints, Int32s, Int32s, Ints, Int32s, Int32s]
"""`op_rows`, `op_bytes`, `held`, `holder_slot`, `slots`, `local` and `missing`."""


@expanded
def finish_in_group(
    fields: Fields, num_slots: int, queues: ReadyQueues, device: int, op: int, now: float
) -> None:
    """Frees what an op held, and hands its outputs to its group."""
    op_rows, op_bytes, held, holder_slot, slots, local, missing = fields
    row = 2 * col.OP_WORDS * op
    ends = row + 2 * col.OP_WORDS
    # Temporary memory, and inputs that nobody else needs.
    freed = op_bytes[u(col.OP_WORDS * op + col.FREES)]
    for entry in range(op_rows[u(row + col.HELD)], op_rows[u(ends + col.HELD)]):
        slot = held[u(entry)]
        if slot >= num_slots:
            slot = holder_slot[u(slot - num_slots)]
        slots[u(col.SLOT_ROW * slot + col.LEFT)] -= 1
        if slots[u(col.SLOT_ROW * slot + col.LEFT)] == 0:
            freed += slots[u(col.SLOT_ROW * slot + col.BYTES)]
    queues[0][u(col.DEVICE_ROW * device + col.MEMORY)] -= freed
    begin, end = op_rows[u(row + col.LOCAL)], op_rows[u(ends + col.LOCAL)]
    hand_over(queues, missing, local, begin, end, device, now)


@njit(cache=True, _nrt=False)
def advance(c: Compiled, s: State, until: int, record: int) -> None:
    """Simulates from where a state stands, see `_advance`, compiled once for all who call it."""
    call_at(c.kernel, (c, s, until, record))


def with_kernel(c: Compiled) -> Compiled:
    """The compiled problem with the address of the code that `advance` calls in this process."""
    address = address_of(_advance, numba.typeof(c), STATE, types.int64, types.int64)
    return c._replace(kernel=address)


def _restored(*fields: Any) -> Compiled:
    return with_kernel(Compiled(*fields))


# A copy in another process calls the code that is there.
copyreg.pickle(Compiled, lambda c: (_restored, tuple(c)))


@allocation_free
def _advance(c: Compiled, s: State, until: int, record: int) -> None:
    """Simulates from where a state stands, instant by instant, until at most so many ops are left.

    Its clock is then at the last instant, that of the latest finish so far. What is wanted, `STEP`,
    `GROUPS` or `OPS`, is recorded.
    """
    # Local names: reading a field of a tuple inside the loops costs more than the loops do.
    (
        op_rows, op_bytes, op_seconds, device_kind, _, local, held, c_slots, crossing_rows,
        bundle_rows, bundled, source_rows, source_bytes, _, launch_overhead, channel_between,
        bandwidth, latency, overhead, multicast, _,
    ) = c  # fmt: skip
    (
        device_of, device_reals, counts, missing, holder_slot, bundle_next, source_next, ready,
        ready_links, ready_keys, copy_at, done, channel_queue, stirred, copies, transfers,
        transfer_links, transfer_keys, event_codes, slots, device_ints, channel_free, event_times,
        ready_since, requested, sent, group_start, clock, op_start, source_start,
    ) = s  # fmt: skip
    ready_heap = (ready_links, ready_since, ready_keys)
    transfer_heap = (transfer_links, requested, transfer_keys)
    queues = (device_ints, device_reals, ready, ready_heap)
    num_devices = len(device_kind)
    num_kinds = len(op_seconds) // max(len(missing), 1)
    num_slots = len(c_slots) // col.SLOT_ROW
    fields = (op_rows, op_bytes, held, holder_slot, slots, local, missing)
    first_crossing = num_slots - (len(crossing_rows) // col.CROSSING_ROW - 1)
    remaining, num_copies = counts[col.REMAINING], counts[col.NUM_COPIES]
    num_transfers, num_events = counts[col.NUM_TRANSFERS], counts[col.NUM_EVENTS]
    groups_wanted, ops_wanted = record >= GROUPS, record >= OPS
    num_stirred = 0
    now = clock[0]
    # Whether the instant is about one device only, which that is, and when the others are due.
    alone, only, second = False, -1, np.inf

    while remaining > until:
        next_event = event_times[0] if num_events > 0 else np.inf
        # Whether any device may start an op, and whether memory grew anywhere.
        free_device = grew = False
        num_done = 0
        others = min(second, next_event)
        if alone and device_reals[u(col.DEVICE_ROW * only + col.NEXT_TIME)] < others:
            # Nothing has changed about the others. The processor foresees this branch and goes on;
            # for the minimum of all it would have to wait.
            now = device_reals[u(col.DEVICE_ROW * only + col.NEXT_TIME)]
        else:
            now, second = np.inf, np.inf
            for device in range(num_devices):
                time = device_reals[u(col.DEVICE_ROW * device + col.NEXT_TIME)]
                only = device if time < now else only
                second = min(second, max(now, time))
                now = min(now, time)
            alone = now < second and now < next_event
        if alone:
            done[0] = only
            num_done, free_device = arrive(device_ints, device_reals, only, now)
        elif now <= next_event:
            for device in range(num_devices):
                if device_reals[u(col.DEVICE_ROW * device + col.NEXT_TIME)] == now:
                    done[u(num_done)] = device
                    finished, free = arrive(device_ints, device_reals, device, now)
                    num_done += finished
                    free_device |= free
        now = min(now, next_event)
        first_device, last_device = (only, only + 1) if alone else (0, num_devices)
        while True:
            for position in range(num_done):
                device = done[u(position)]
                at = col.DEVICE_ROW * device
                op = device_ints[u(at + col.RUNNING)]
                device_ints[u(at + col.RUNNING)] = -1
                remaining -= 1
                finish_in_group(fields, num_slots, queues, device, op, now)
                # Hand its outputs to other groups, on its device or elsewhere.
                row = 2 * col.OP_WORDS * op + col.CROSSES
                for tensor in range(op_rows[u(row)], op_rows[u(row + 2 * col.OP_WORDS)]):
                    slot = first_crossing + tensor
                    size = slots[u(col.SLOT_ROW * slot + col.BYTES)]
                    copies_before, transfers_before = num_copies, num_transfers
                    row = col.CROSSING_ROW * tensor
                    number = crossing_rows[u(row + col.TENSOR)]
                    begin, end = crossing_rows[u(row)], crossing_rows[u(row + col.CROSSING_ROW)]
                    for bundle in range(begin, end):
                        row = col.BUNDLE_ROW * bundle
                        target = device_of[u(bundle_rows[u(row + col.TO_GROUP)])]
                        holders = bundle_rows[u(row + col.HOLDERS)]
                        if target == device:
                            holder_slot[u(bundle)] = slot
                            slots[u(col.SLOT_ROW * slot + col.LEFT)] += holders
                            begin, end = bundle_rows[u(row)], bundle_rows[u(row + col.BUNDLE_ROW)]
                            hand_over(queues, missing, bundled, begin, end, device, now)
                            continue
                        copy = copy_at[u(target)]
                        if copy < 0:
                            copy = num_copies
                            num_copies += 1
                            copy_at[u(target)] = copy
                            copies[u(col.COPY_ROW * copy + col.ON_DEVICE)] = target
                            copies[u(col.COPY_ROW * copy + col.BUNDLE)] = -1
                            slots[u(col.SLOT_ROW * (num_slots + copy) + col.LEFT)] = 0
                            slots[u(col.SLOT_ROW * (num_slots + copy) + col.BYTES)] = size
                            channel = channel_between[u(num_devices * device + target)]
                            transfer = channel_queue[u(col.CHANNEL_ROW * channel + col.AT_HAND)]
                            if transfer < 0 or not multicast[u(channel)]:
                                # Bundles come by their lowest consumers: this is the lowest.
                                transfer = num_transfers
                                num_transfers += 1
                                channel_queue[u(col.CHANNEL_ROW * channel + col.AT_HAND)] = transfer
                                transfers[u(col.TRANSFER_ROW * transfer + col.CHANNEL)] = channel
                                transfers[u(col.TRANSFER_ROW * transfer + col.CROSSING)] = tensor
                                transfers[u(col.TRANSFER_ROW * transfer + col.COPY)] = -1
                                transfers[u(col.TRANSFER_ROW * transfer + col.SENDER)] = device
                                transfer_keys[u(2 * transfer)] = bundle_rows[u(row + col.LOWEST)]
                                transfer_keys[u(2 * transfer + 1)] = number
                                requested[u(transfer)] = now
                                slots[u(col.SLOT_ROW * slot + col.LEFT)] += 1
                            chain = col.TRANSFER_ROW * transfer + col.COPY
                            copies[u(col.COPY_ROW * copy + col.NEXT_COPY)] = transfers[u(chain)]
                            transfers[u(chain)] = copy
                        holder_slot[u(bundle)] = num_slots + copy
                        slots[u(col.SLOT_ROW * (num_slots + copy) + col.LEFT)] += holders
                        bundle_next[u(bundle)] = copies[u(col.COPY_ROW * copy + col.BUNDLE)]
                        copies[u(col.COPY_ROW * copy + col.BUNDLE)] = bundle
                    for copy in range(copies_before, num_copies):
                        copy_at[u(copies[u(col.COPY_ROW * copy + col.ON_DEVICE)])] = -1
                    for transfer in range(transfers_before, num_transfers):
                        channel = transfers[u(col.TRANSFER_ROW * transfer + col.CHANNEL)]
                        queue = col.CHANNEL_ROW * channel
                        channel_queue[u(queue + col.AT_HAND)] = -1
                        request(channel_queue, transfer_heap, channel, transfer)
                        wakes = channel_queue[u(queue + col.WAKES)]
                        free_at = channel_free[u(channel)]
                        if free_at <= now and wakes != 1:
                            channel_queue[u(queue + col.WAKES)] = 1
                            stirred[u(num_stirred)] = channel
                            num_stirred += 1
                        elif free_at > now and wakes < 0:
                            channel_queue[u(queue + col.WAKES)] = 0
                            num_events = push(
                                event_times, event_codes, num_events, free_at, ~channel
                            )
                    if slots[u(col.SLOT_ROW * slot + col.LEFT)] == 0:
                        device_ints[u(at + col.MEMORY)] -= size
            num_done = 0

            while num_events > 0 and event_times[0] == now:
                transfer = event_codes[0]
                num_events = pop(event_times, event_codes, num_events)
                if transfer < 0:
                    channel = ~transfer
                    if channel_queue[u(col.CHANNEL_ROW * channel + col.WAKES)] != 1:
                        channel_queue[u(col.CHANNEL_ROW * channel + col.WAKES)] = 1
                        stirred[u(num_stirred)] = channel
                        num_stirred += 1
                    continue
                alone = False
                first_device, last_device = 0, num_devices
                copy = transfers[u(col.TRANSFER_ROW * transfer + col.COPY)]
                while copy >= 0:
                    device = copies[u(col.COPY_ROW * copy + col.ON_DEVICE)]
                    free_device |= device_reals[u(col.DEVICE_ROW * device + col.FREE)] <= now
                    bundle = copies[u(col.COPY_ROW * copy + col.BUNDLE)]
                    while bundle >= 0:
                        row = col.BUNDLE_ROW * bundle
                        begin, end = bundle_rows[u(row)], bundle_rows[u(row + col.BUNDLE_ROW)]
                        hand_over(queues, missing, bundled, begin, end, device, now)
                        bundle = bundle_next[u(bundle)]
                    copy = copies[u(col.COPY_ROW * copy + col.NEXT_COPY)]
                slot = first_crossing + transfers[u(col.TRANSFER_ROW * transfer + col.CROSSING)]
                slots[u(col.SLOT_ROW * slot + col.LEFT)] -= 1
                if slots[u(col.SLOT_ROW * slot + col.LEFT)] == 0:
                    sender = transfers[u(col.TRANSFER_ROW * transfer + col.SENDER)]
                    size = slots[u(col.SLOT_ROW * slot + col.BYTES)]
                    device_ints[u(col.DEVICE_ROW * sender + col.MEMORY)] -= size

            for position in range(num_stirred):
                channel = stirred[u(position)]
                queue = col.CHANNEL_ROW * channel
                channel_queue[u(queue + col.WAKES)] = -1
                while channel_free[u(channel)] <= now:
                    transfer = next_transfer(channel_queue, transfer_heap, channel)
                    if transfer < 0:
                        break
                    sent[u(transfer)] = now
                    tensor = transfers[u(col.TRANSFER_ROW * transfer + col.CROSSING)]
                    size = slots[u(col.SLOT_ROW * (first_crossing + tensor) + col.BYTES)]
                    left_at = now + size / bandwidth[u(channel)]
                    channel_free[u(channel)] = left_at + overhead[u(channel)]
                    arrival = left_at + latency[u(channel)]
                    num_events = push(event_times, event_codes, num_events, arrival, transfer)
                    grew, alone = True, False
                    copy = transfers[u(col.TRANSFER_ROW * transfer + col.COPY)]
                    while copy >= 0:
                        device = copies[u(col.COPY_ROW * copy + col.ON_DEVICE)]
                        device_ints[u(col.DEVICE_ROW * device + col.MEMORY)] += size
                        copy = copies[u(col.COPY_ROW * copy + col.NEXT_COPY)]
                if (
                    channel_queue[u(queue + col.FIRST)] >= 0
                    or channel_queue[u(queue + col.HEAP)] >= 0
                ):
                    channel_queue[u(queue + col.WAKES)] = 0
                    wakes_at = channel_free[u(channel)]
                    num_events = push(event_times, event_codes, num_events, wakes_at, ~channel)
            num_stirred = 0
            if num_events > 0 and event_times[0] == now:
                continue

            if alone and not free_device and not grew and remaining > until:
                next_event = event_times[0] if num_events > 0 else np.inf
                if device_reals[u(col.DEVICE_ROW * only + col.FREE)] < min(second, next_event):
                    # Nothing happens before the device is free: that is the next instant.
                    now = device_reals[u(col.DEVICE_ROW * only + col.FREE)]
                    device_reals[u(col.DEVICE_ROW * only + col.NEXT_TIME)] = np.inf
                    free_device = True
            device = first_device if free_device else last_device
            while device < last_device:
                at = col.DEVICE_ROW * device
                if device_reals[u(at + col.FREE)] > now:
                    device += 1
                    continue
                head, root = device_ints[u(at + col.HEAD)], device_ints[u(at + col.ROOT)]
                op = ready[u(head)] if head < device_ints[u(at + col.TAIL)] else -1
                heaped = root >= 0 and (
                    op < 0 or (head >= device_ints[u(at + col.LATEST)] and root < op)
                )
                if heaped:
                    op = root
                # Whether the op was ready at 0.
                first = device_reals[u(at + col.LATEST_AT)] == 0 or (
                    not heaped and head < device_ints[u(at + col.FIRST_TAIL)]
                )
                source = device_ints[u(at + col.SOURCE)]
                if source >= 0 and (
                    op < 0 or not first or op >= source_rows[u(col.SOURCE_ROW * source + col.RANK)]
                ):
                    device_ints[u(at + col.SOURCE)] = source_next[u(source)]
                    if ops_wanted:
                        source_start[u(source)] = now
                    op = source_rows[u(col.SOURCE_ROW * source + col.SOURCE_OP)]
                    if op < 0:
                        device_ints[u(at + col.MEMORY)] += source_bytes[u(source)]
                        grew = True
                        continue
                elif op < 0:
                    device += 1
                    continue
                elif heaped:
                    device_ints[u(at + col.ROOT)] = heap_rest(ready_heap, root)
                else:
                    device_ints[u(at + col.HEAD)] = head + 1
                device_ints[u(at + col.MEMORY)] += op_bytes[u(col.OP_WORDS * op + col.ALLOCATES)]
                grew = True
                seconds = op_seconds[u(num_kinds * op + device_kind[u(device)])]
                if ops_wanted:
                    op_start[u(op)] = now
                row = 2 * col.OP_WORDS * op + col.CROSSES
                if seconds == 0 and op_rows[u(row)] == op_rows[u(row + 2 * col.OP_WORDS)]:
                    # It is over at once, and concerns its own device only, which goes on.
                    remaining -= 1
                    finish_in_group(fields, num_slots, queues, device, op, now)
                    continue
                device_ints[u(at + col.RUNNING)] = op
                finish = now
                if seconds > 0:
                    finish = now + seconds
                    device_reals[u(at + col.FREE)] = finish + launch_overhead[u(device)]
                    if groups_wanted:
                        group = op_rows[u(2 * col.OP_WORDS * op + col.GROUP)]
                        if group_start[u(group)] < 0:
                            group_start[u(group)] = now
                if finish == now:
                    if device_reals[u(at + col.FREE)] > now:
                        device_reals[u(at + col.NEXT_TIME)] = device_reals[u(at + col.FREE)]
                    done[0] = device
                    num_done = 1
                    first_device = device
                    break
                device_reals[u(at + col.NEXT_TIME)] = finish
                device += 1
            if num_done == 0:
                break
        # Lifetimes are half-open: only what is held when the instant is over counts.
        if grew:
            first_device, last_device = (only, only + 1) if alone else (0, num_devices)
            for device in range(first_device, last_device):
                at = col.DEVICE_ROW * device
                in_use = device_ints[u(at + col.MEMORY)]
                device_ints[u(at + col.PEAK)] = max(device_ints[u(at + col.PEAK)], in_use)
    clock[0] = now
    counts[col.REMAINING], counts[col.NUM_COPIES] = remaining, num_copies
    counts[col.NUM_TRANSFERS], counts[col.NUM_EVENTS] = num_transfers, num_events
