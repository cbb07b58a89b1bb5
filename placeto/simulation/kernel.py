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

from placeto.simulation.compiled import (
    ALLOCATES,
    BUNDLE_ROW,
    BYTES,
    CROSSES,
    CROSSING_ROW,
    GROUP,
    HOLDERS,
    LEFT,
    LOWEST,
    OP_WORDS,
    RANK,
    SLOT_ROW,
    SOURCE_OP,
    SOURCE_ROW,
    TENSOR,
    TO_GROUP,
    Compiled,
)
from placeto.simulation.outputs import finish_in_group, hand_to_bundle
from placeto.simulation.queues import (
    AT_HAND,
    CHANNEL_ROW,
    DEVICE_ROW,
    FIRST,
    FIRST_TAIL,
    FREE,
    HEAD,
    HEAP,
    LATEST,
    LATEST_AT,
    MEMORY,
    NEXT_TIME,
    PEAK,
    ROOT,
    RUNNING,
    SOURCE,
    TAIL,
    WAKES,
    allocation_free,
    heap_rest,
    next_transfer,
    pop,
    push,
    request,
    u,
)
from placeto.simulation.state import (
    BUNDLE,
    CHANNEL,
    COPY,
    COPY_ROW,
    CROSSING,
    GROUPS,
    NEXT_COPY,
    NUM_COPIES,
    NUM_EVENTS,
    NUM_TRANSFERS,
    ON_DEVICE,
    OPS,
    REMAINING,
    SENDER,
    STATE,
    TRANSFER_ROW,
    State,
)
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import address_of, call_at, inner, njit


@inner(cache=True, _nrt=False, forceinline=True)
def arrive(
    device_ints: Ints, device_reals: Floats, device: int, now: float
) -> tuple[int, bool]:  # pragma: no cover
    """Takes a device to its next instant.

    Returns:
        How many ops it finishes there, and whether it is free.
    """
    at = DEVICE_ROW * device
    finished = 1 if device_ints[u(at + RUNNING)] >= 0 else 0
    if finished == 1 and device_reals[u(at + FREE)] > now:
        device_reals[u(at + NEXT_TIME)] = device_reals[u(at + FREE)]
        return finished, False
    device_reals[u(at + NEXT_TIME)] = np.inf
    return finished, True


@njit(cache=True, _nrt=False)
def advance(c: Compiled, s: State, until: int, record: int) -> None:  # pragma: no cover
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
def _advance(c: Compiled, s: State, until: int, record: int) -> None:  # pragma: no cover
    """Simulates from where a state stands, instant by instant.

    Args:
        c: the compiled problem.
        s: changed; its clock is then at the last instant, that of the latest finish so far.
        until: stop when at most so many ops are left.
        record: what is wanted: `STEP`, `GROUPS` or `OPS`.
    """
    # Local names: reading a field of a tuple inside the loops costs more than the loops do.
    (
        op_rows, op_bytes, op_seconds, device_kind, _, local, held, c_slots, crossing_rows,
        bundle_rows, bundled, source_rows, source_bytes, _, launch_overhead, channel_between,
        bandwidth, latency, overhead, multicast, _,
    ) = c  # fmt: skip
    (
        counts, missing, slots, holder_slot, bundle_next, source_next, device_of, ready,
        ready_links, ready_keys, device_ints, device_reals, copy_at, done, channel_queue, stirred,
        copies, transfers, transfer_links, transfer_keys, event_codes, channel_free,
        event_times, ready_since, requested, sent, group_start, clock, op_start, source_start,
    ) = s  # fmt: skip
    queues = (device_ints, device_reals, ready, ready_links, ready_keys)
    num_devices = len(device_kind)
    num_kinds = len(op_seconds) // max(len(missing), 1)
    num_slots = len(c_slots) // SLOT_ROW
    first_crossing = num_slots - (len(crossing_rows) // CROSSING_ROW - 1)
    remaining, num_copies, num_transfers, num_events = (
        counts[REMAINING], counts[NUM_COPIES], counts[NUM_TRANSFERS], counts[NUM_EVENTS],
    )  # fmt: skip
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
        if alone and device_reals[u(DEVICE_ROW * only + NEXT_TIME)] < min(second, next_event):
            # Nothing has changed about the others. The processor foresees this branch and goes on;
            # for the minimum of all it would have to wait.
            now = device_reals[u(DEVICE_ROW * only + NEXT_TIME)]
        else:
            now, second = np.inf, np.inf
            for device in range(num_devices):
                time = device_reals[u(DEVICE_ROW * device + NEXT_TIME)]
                only = device if time < now else only
                second = min(second, max(now, time))
                now = min(now, time)
            alone = now < second and now < next_event
        if alone:
            done[0] = only
            num_done, free_device = arrive(device_ints, device_reals, only, now)
        elif now <= next_event:
            for device in range(num_devices):
                if device_reals[u(DEVICE_ROW * device + NEXT_TIME)] == now:
                    done[u(num_done)] = device
                    finished, free = arrive(device_ints, device_reals, device, now)
                    num_done += finished
                    free_device |= free
        now = min(now, next_event)
        first_device, last_device = (only, only + 1) if alone else (0, num_devices)
        while True:
            for position in range(num_done):
                device = done[u(position)]
                at = DEVICE_ROW * device
                op = device_ints[u(at + RUNNING)]
                device_ints[u(at + RUNNING)] = -1
                remaining -= 1
                row = 2 * OP_WORDS * op
                ends = row + 2 * OP_WORDS
                finish_in_group(
                    op_rows, op_bytes, held, holder_slot, slots, num_slots, local, missing, queues,
                    ready_since, device, op, now,
                )  # fmt: skip
                # Hand its outputs to other groups, on its device or elsewhere.
                for tensor in range(op_rows[u(row + CROSSES)], op_rows[u(ends + CROSSES)]):
                    slot = first_crossing + tensor
                    copies_before, transfers_before = num_copies, num_transfers
                    for bundle in range(
                        crossing_rows[u(CROSSING_ROW * tensor)],
                        crossing_rows[u(CROSSING_ROW * tensor + CROSSING_ROW)],
                    ):
                        row = BUNDLE_ROW * bundle
                        group = bundle_rows[u(row + TO_GROUP)]
                        target = device_of[u(group)]
                        if target == device:
                            holder_slot[u(bundle)] = slot
                            slots[u(SLOT_ROW * slot + LEFT)] += bundle_rows[u(row + HOLDERS)]
                            hand_to_bundle(
                                bundle_rows,
                                bundled,
                                missing,
                                queues,
                                ready_since,
                                device,
                                bundle,
                                now,
                            )
                            continue
                        copy = copy_at[u(target)]
                        if copy < 0:
                            copy = num_copies
                            num_copies += 1
                            copy_at[u(target)] = copy
                            copies[u(COPY_ROW * copy + ON_DEVICE)] = target
                            copies[u(COPY_ROW * copy + BUNDLE)] = -1
                            slots[u(SLOT_ROW * (num_slots + copy) + LEFT)] = 0
                            slots[u(SLOT_ROW * (num_slots + copy) + BYTES)] = slots[
                                u(SLOT_ROW * slot + BYTES)
                            ]
                            channel = channel_between[u(num_devices * device + target)]
                            transfer = channel_queue[u(CHANNEL_ROW * channel + AT_HAND)]
                            if transfer < 0 or not multicast[u(channel)]:
                                # Bundles come by their lowest consumers: this is the lowest.
                                transfer = num_transfers
                                num_transfers += 1
                                channel_queue[u(CHANNEL_ROW * channel + AT_HAND)] = transfer
                                transfers[u(TRANSFER_ROW * transfer + CHANNEL)] = channel
                                transfers[u(TRANSFER_ROW * transfer + CROSSING)] = tensor
                                transfers[u(TRANSFER_ROW * transfer + COPY)] = -1
                                transfers[u(TRANSFER_ROW * transfer + SENDER)] = device
                                transfer_keys[u(2 * transfer)] = bundle_rows[u(row + LOWEST)]
                                transfer_keys[u(2 * transfer + 1)] = crossing_rows[
                                    u(CROSSING_ROW * tensor + TENSOR)
                                ]
                                requested[u(transfer)] = now
                                slots[u(SLOT_ROW * slot + LEFT)] += 1
                            copies[u(COPY_ROW * copy + NEXT_COPY)] = transfers[
                                u(TRANSFER_ROW * transfer + COPY)
                            ]
                            transfers[u(TRANSFER_ROW * transfer + COPY)] = copy
                        holder_slot[u(bundle)] = num_slots + copy
                        slots[u(SLOT_ROW * (num_slots + copy) + LEFT)] += bundle_rows[
                            u(row + HOLDERS)
                        ]
                        bundle_next[u(bundle)] = copies[u(COPY_ROW * copy + BUNDLE)]
                        copies[u(COPY_ROW * copy + BUNDLE)] = bundle
                    for copy in range(copies_before, num_copies):
                        copy_at[u(copies[u(COPY_ROW * copy + ON_DEVICE)])] = -1
                    for transfer in range(transfers_before, num_transfers):
                        channel = transfers[u(TRANSFER_ROW * transfer + CHANNEL)]
                        queue = CHANNEL_ROW * channel
                        channel_queue[u(queue + AT_HAND)] = -1
                        request(
                            channel_queue,
                            requested,
                            transfer_links,
                            transfer_keys,
                            channel,
                            transfer,
                        )
                        if channel_free[u(channel)] <= now:
                            if channel_queue[u(queue + WAKES)] != 1:
                                channel_queue[u(queue + WAKES)] = 1
                                stirred[u(num_stirred)] = channel
                                num_stirred += 1
                        elif channel_queue[u(queue + WAKES)] < 0:
                            channel_queue[u(queue + WAKES)] = 0
                            wakes_at = channel_free[u(channel)]
                            num_events = push(
                                event_times, event_codes, num_events, wakes_at, ~channel
                            )
                    if slots[u(SLOT_ROW * slot + LEFT)] == 0:
                        device_ints[u(at + MEMORY)] -= slots[u(SLOT_ROW * slot + BYTES)]
            num_done = 0

            while num_events > 0 and event_times[0] == now:
                transfer = event_codes[0]
                num_events = pop(event_times, event_codes, num_events)
                if transfer < 0:
                    channel = ~transfer
                    if channel_queue[u(CHANNEL_ROW * channel + WAKES)] != 1:
                        channel_queue[u(CHANNEL_ROW * channel + WAKES)] = 1
                        stirred[u(num_stirred)] = channel
                        num_stirred += 1
                    continue
                alone = False
                first_device, last_device = 0, num_devices
                copy = transfers[u(TRANSFER_ROW * transfer + COPY)]
                while copy >= 0:
                    device = copies[u(COPY_ROW * copy + ON_DEVICE)]
                    at = DEVICE_ROW * device
                    if device_reals[u(at + FREE)] <= now:
                        free_device = True
                    bundle = copies[u(COPY_ROW * copy + BUNDLE)]
                    while bundle >= 0:
                        hand_to_bundle(
                            bundle_rows, bundled, missing, queues, ready_since, device,
                            bundle, now,
                        )  # fmt: skip
                        bundle = bundle_next[u(bundle)]
                    copy = copies[u(COPY_ROW * copy + NEXT_COPY)]
                slot = first_crossing + transfers[u(TRANSFER_ROW * transfer + CROSSING)]
                slots[u(SLOT_ROW * slot + LEFT)] -= 1
                if slots[u(SLOT_ROW * slot + LEFT)] == 0:
                    sender = transfers[u(TRANSFER_ROW * transfer + SENDER)]
                    device_ints[u(DEVICE_ROW * sender + MEMORY)] -= slots[
                        u(SLOT_ROW * slot + BYTES)
                    ]

            for position in range(num_stirred):
                channel = stirred[u(position)]
                queue = CHANNEL_ROW * channel
                channel_queue[u(queue + WAKES)] = -1
                while channel_free[u(channel)] <= now:
                    transfer = next_transfer(
                        channel_queue, requested, transfer_links, transfer_keys, channel
                    )
                    if transfer < 0:
                        break
                    sent[u(transfer)] = now
                    tensor = transfers[u(TRANSFER_ROW * transfer + CROSSING)]
                    size = slots[u(SLOT_ROW * (first_crossing + tensor) + BYTES)]
                    left_at = now + size / bandwidth[u(channel)]
                    channel_free[u(channel)] = left_at + overhead[u(channel)]
                    arrival = left_at + latency[u(channel)]
                    num_events = push(event_times, event_codes, num_events, arrival, transfer)
                    grew, alone = True, False
                    copy = transfers[u(TRANSFER_ROW * transfer + COPY)]
                    while copy >= 0:
                        device = copies[u(COPY_ROW * copy + ON_DEVICE)]
                        at = DEVICE_ROW * device
                        device_ints[u(at + MEMORY)] += size
                        copy = copies[u(COPY_ROW * copy + NEXT_COPY)]
                if channel_queue[u(queue + FIRST)] >= 0 or channel_queue[u(queue + HEAP)] >= 0:
                    channel_queue[u(queue + WAKES)] = 0
                    wakes_at = channel_free[u(channel)]
                    num_events = push(event_times, event_codes, num_events, wakes_at, ~channel)
            num_stirred = 0
            if num_events > 0 and event_times[0] == now:
                continue

            if alone and not free_device and not grew and remaining > until:
                next_event = event_times[0] if num_events > 0 else np.inf
                if device_reals[u(DEVICE_ROW * only + FREE)] < min(second, next_event):
                    # Nothing happens before the device is free: that is the next instant.
                    now = device_reals[u(DEVICE_ROW * only + FREE)]
                    device_reals[u(DEVICE_ROW * only + NEXT_TIME)] = np.inf
                    free_device = True
            device = first_device if free_device else last_device
            while device < last_device:
                at = DEVICE_ROW * device
                if device_reals[u(at + FREE)] > now:
                    device += 1
                    continue
                head, root = device_ints[u(at + HEAD)], device_ints[u(at + ROOT)]
                op = ready[u(head)] if head < device_ints[u(at + TAIL)] else -1
                heaped = root >= 0 and (
                    op < 0 or (head >= device_ints[u(at + LATEST)] and root < op)
                )
                if heaped:
                    op = root
                # Whether the op was ready at 0.
                first = device_reals[u(at + LATEST_AT)] == 0 or (
                    not heaped and head < device_ints[u(at + FIRST_TAIL)]
                )
                source = device_ints[u(at + SOURCE)]
                if source >= 0 and (
                    op < 0 or not first or op >= source_rows[u(SOURCE_ROW * source + RANK)]
                ):
                    device_ints[u(at + SOURCE)] = source_next[u(source)]
                    if ops_wanted:
                        source_start[u(source)] = now
                    op = source_rows[u(SOURCE_ROW * source + SOURCE_OP)]
                    if op < 0:
                        device_ints[u(at + MEMORY)] += source_bytes[u(source)]
                        grew = True
                        continue
                elif op < 0:
                    device += 1
                    continue
                elif heaped:
                    device_ints[u(at + ROOT)] = heap_rest(
                        ready_links, ready_since, ready_keys, root
                    )
                else:
                    device_ints[u(at + HEAD)] = head + 1
                device_ints[u(at + MEMORY)] += op_bytes[u(OP_WORDS * op + ALLOCATES)]
                grew = True
                seconds = op_seconds[u(num_kinds * op + device_kind[u(device)])]
                if ops_wanted:
                    op_start[u(op)] = now
                row = 2 * OP_WORDS * op + CROSSES
                if seconds == 0 and op_rows[u(row)] == op_rows[u(row + 2 * OP_WORDS)]:
                    # It is over at once, and concerns its own device only, which goes on.
                    remaining -= 1
                    finish_in_group(
                        op_rows, op_bytes, held, holder_slot, slots, num_slots, local, missing,
                        queues, ready_since, device, op, now,
                    )  # fmt: skip
                    continue
                device_ints[u(at + RUNNING)] = op
                finish = now
                if seconds > 0:
                    finish = now + seconds
                    device_reals[u(at + FREE)] = finish + launch_overhead[u(device)]
                    if groups_wanted:
                        group = op_rows[u(2 * OP_WORDS * op + GROUP)]
                        if group_start[u(group)] < 0:
                            group_start[u(group)] = now
                if finish == now:
                    if device_reals[u(at + FREE)] > now:
                        device_reals[u(at + NEXT_TIME)] = device_reals[u(at + FREE)]
                    done[0] = device
                    num_done = 1
                    first_device = device
                    break
                device_reals[u(at + NEXT_TIME)] = finish
                device += 1
            if num_done == 0:
                break
        # Lifetimes are half-open: only what is held when the instant is over counts.
        if grew:
            first_device, last_device = (only, only + 1) if alone else (0, num_devices)
            for device in range(first_device, last_device):
                at = DEVICE_ROW * device
                device_ints[u(at + PEAK)] = max(
                    device_ints[u(at + PEAK)], device_ints[u(at + MEMORY)]
                )
    clock[0] = now
    counts[REMAINING], counts[NUM_COPIES] = remaining, num_copies
    counts[NUM_TRANSFERS], counts[NUM_EVENTS] = num_transfers, num_events
