"""The event-driven simulation kernel: semantics version 1, compiled.

At every instant t the kernel does, in this order and until nothing is left to do at t:

1. all ops that finish and all transfers that arrive at t: tensors become present, ops become
   ready, transfers are requested;
2. every free channel starts its first request;
3. the lowest-numbered free device that has a ready op starts its first one, and the kernel goes
   back to 1, since an op of zero duration finishes at t itself.

This is the order in which Placeto's released simulator takes the events of one instant.
"""

import numpy as np
from numba import njit

from placeto.graph import Ints
from placeto.simulation.compiled import (
    ALLOCATES,
    FIRST_BUNDLED,
    FIRST_CROSSING,
    FIRST_HELD,
    FIRST_LOCAL,
    FREES,
    GROUP,
    HOLDERS,
    LOWEST_CONSUMER,
    SOURCE_GROUP,
    SOURCE_OP,
    SOURCE_RANK,
    TO_GROUP,
    Compiled,
)
from placeto.simulation.queues import (
    AT_HAND,
    FIRST,
    HEAD,
    HEAP,
    ROOT,
    RUNNING,
    SOURCE,
    TAIL,
    WAKES,
    enqueue,
    heap_rest,
    lean,
    next_transfer,
    pop,
    precedes,
    push,
    request,
)
from placeto.simulation.state import (
    BUNDLE,
    CHANNEL,
    COPY,
    CROSSING,
    INSTANTS,
    NEVER,
    NEXT_COPY,
    NUM_COPIES,
    NUM_EVENTS,
    NUM_TRANSFERS,
    ON_DEVICE,
    REMAINING,
    SENDER,
    SEVERAL,
    State,
)


@njit(cache=True)
def begin(c: Compiled, devices: Ints, s: State) -> None:  # pragma: no cover
    """Sets a state to the beginning of a step.

    Args:
        c: the compiled problem.
        devices: (num_groups,) device of each group.
        s: written.
    """
    num_kept, num_devices = c.op_seconds.shape
    s.counts[:] = 0
    s.counts[REMAINING] = num_kept
    s.missing[:] = c.missing
    s.left[: len(c.left)] = c.left
    s.memory[:] = 0
    s.group_start[:] = -1.0
    s.touched[:] = -1
    for group in range(len(devices)):
        s.memory[devices[group]] += c.group_bytes[group]
    s.peak[:] = s.memory
    s.early_peak[:] = NEVER
    s.held_until[:] = 0.0
    s.first_holder[:] = -1
    s.clock[0] = 0.0
    for device in range(num_devices):
        s.device_queue[device, :] = -1
        s.device_queue[device, HEAD] = 0
        s.device_queue[device, TAIL] = 0
        s.next_time[device] = 0.0  # which makes 0 the first instant
        s.free[device] = 0.0
    s.channel_queue[:] = -1
    s.channel_free[:] = 0.0
    for source in range(len(c.source_rows) - 1, -1, -1):
        device = devices[c.source_rows[source, SOURCE_GROUP]]
        s.source_next[source] = s.device_queue[device, SOURCE]
        s.device_queue[device, SOURCE] = source
        if c.source_rows[source, SOURCE_OP] >= 0:
            s.touched[c.source_rows[source, SOURCE_GROUP]] = 0


@lean
def advance(
    c: Compiled, devices: Ints, s: State, until: int, record: bool
) -> None:  # pragma: no cover
    """Simulates from where a state stands, instant by instant.

    Args:
        c: the compiled problem.
        devices: (num_groups,) device of each group.
        s: changed; its clock is then at the last instant, that of the latest finish so far.
        until: stop when at most so many ops are left.
        record: whether the starts of ops are wanted.
    """
    # Local names: reading a field of a tuple inside the loops costs more than the loops do.
    (
        op_rows, op_seconds, op_bytes, _, local, held, left_inside, _, crossing_rows, bundle_rows,
        bundled, source_rows, source_bytes, _, launch_overhead, channel_between, bandwidth,
        latency, overhead, multicast,
    ) = c  # fmt: skip
    (
        counts, missing, left, holder_slot, bundle_next, source_next, ready, ready_links,
        ready_keys, device_queue, copy_at, done, channel_queue, stirred, copies, transfers,
        transfer_links, transfer_keys, event_codes, touched, memory, peak, slot_bytes, next_time,
        free, channel_free, event_times, ready_since, requested, sent, group_start, early_peak,
        held_until, first_holder, clock, op_start, source_start,
    ) = s  # fmt: skip
    num_devices = op_seconds.shape[1]
    num_slots = len(left_inside)
    first_crossing = num_slots - (len(crossing_rows) - 1)
    remaining, num_copies, num_transfers, num_events, instant = (
        counts[REMAINING], counts[NUM_COPIES], counts[NUM_TRANSFERS], counts[NUM_EVENTS],
        counts[INSTANTS],
    )  # fmt: skip
    num_stirred = 0
    now = clock[0]

    while remaining > until:
        now = np.inf
        for device in range(num_devices):
            now = min(now, next_time[device])
        if num_events > 0:
            now = min(now, event_times[0])
        num_done = 0
        for device in range(num_devices):
            if next_time[device] == now:
                next_time[device] = np.inf
                if device_queue[device, RUNNING] >= 0:
                    done[num_done] = device
                    num_done += 1
                    if free[device] > now:
                        next_time[device] = free[device]
        first_device = 0
        while True:
            for position in range(num_done):
                device = done[position]
                op = device_queue[device, RUNNING]
                device_queue[device, RUNNING] = -1
                remaining -= 1
                # Free what the op held: temporary memory, inputs that nobody else needs.
                memory[device] -= op_bytes[op, FREES]
                for entry in range(op_rows[op, FIRST_HELD], op_rows[op + 1, FIRST_HELD]):
                    slot = holder_slot[held[entry]]
                    left[slot] -= 1
                    if left[slot] == 0:
                        memory[device] -= slot_bytes[slot]
                # Hand its outputs to its group, and to the groups that live on its device.
                for entry in range(op_rows[op, FIRST_LOCAL], op_rows[op + 1, FIRST_LOCAL]):
                    consumer = local[entry]
                    missing[consumer] -= 1
                    if missing[consumer] == 0:
                        enqueue(
                            device_queue,
                            ready,
                            ready_since,
                            ready_links,
                            ready_keys,
                            device,
                            consumer,
                            now,
                        )
                for tensor in range(op_rows[op, FIRST_CROSSING], op_rows[op + 1, FIRST_CROSSING]):
                    slot = first_crossing + tensor
                    copies_before, transfers_before = num_copies, num_transfers
                    for bundle in range(crossing_rows[tensor, 0], crossing_rows[tensor + 1, 0]):
                        group = bundle_rows[bundle, TO_GROUP]
                        target = devices[group]
                        if touched[group] < 0:
                            touched[group] = instant
                        if target == device:
                            holder_slot[num_slots + bundle] = slot
                            left[slot] += bundle_rows[bundle, HOLDERS]
                            for entry in range(
                                bundle_rows[bundle, FIRST_BUNDLED],
                                bundle_rows[bundle + 1, FIRST_BUNDLED],
                            ):
                                consumer = bundled[entry]
                                missing[consumer] -= 1
                                if missing[consumer] == 0:
                                    enqueue(
                                        device_queue,
                                        ready,
                                        ready_since,
                                        ready_links,
                                        ready_keys,
                                        device,
                                        consumer,
                                        now,
                                    )
                            continue
                        copy = copy_at[target]
                        if copy < 0:
                            copy = num_copies
                            num_copies += 1
                            copy_at[target] = copy
                            copies[copy, ON_DEVICE] = target
                            copies[copy, BUNDLE] = -1
                            left[num_slots + copy] = 0
                            slot_bytes[num_slots + copy] = slot_bytes[slot]
                            channel = channel_between[device, target]
                            transfer = channel_queue[channel, AT_HAND]
                            if transfer < 0 or not multicast[channel]:
                                # Bundles come by their lowest consumers: this is the lowest.
                                transfer = num_transfers
                                num_transfers += 1
                                channel_queue[channel, AT_HAND] = transfer
                                transfers[transfer, CHANNEL] = channel
                                transfers[transfer, CROSSING] = tensor
                                transfer_keys[transfer, 0] = bundle_rows[bundle, LOWEST_CONSUMER]
                                transfer_keys[transfer, 1] = crossing_rows[tensor, 1]
                                transfers[transfer, COPY] = -1
                                transfers[transfer, SENDER] = device
                                requested[transfer] = now
                                left[slot] += 1
                            copies[copy, NEXT_COPY] = transfers[transfer, COPY]
                            transfers[transfer, COPY] = copy
                        holder_slot[num_slots + bundle] = num_slots + copy
                        left[num_slots + copy] += bundle_rows[bundle, HOLDERS]
                        bundle_next[bundle] = copies[copy, BUNDLE]
                        copies[copy, BUNDLE] = bundle
                    for copy in range(copies_before, num_copies):
                        copy_at[copies[copy, ON_DEVICE]] = -1
                    for transfer in range(transfers_before, num_transfers):
                        channel = transfers[transfer, CHANNEL]
                        channel_queue[channel, AT_HAND] = -1
                        request(
                            channel_queue,
                            requested,
                            transfer_links,
                            transfer_keys,
                            channel,
                            transfer,
                        )
                        if channel_free[channel] <= now:
                            if channel_queue[channel, WAKES] != 1:
                                channel_queue[channel, WAKES] = 1
                                stirred[num_stirred] = channel
                                num_stirred += 1
                        elif channel_queue[channel, WAKES] < 0:
                            channel_queue[channel, WAKES] = 0
                            num_events = push(
                                event_times, event_codes, num_events, channel_free[channel],
                                ~channel,
                            )  # fmt: skip
                    if left[slot] == 0:
                        memory[device] -= slot_bytes[slot]
            num_done = 0

            while num_events > 0 and event_times[0] == now:
                transfer = event_codes[0]
                num_events = pop(event_times, event_codes, num_events)
                if transfer < 0:
                    channel = ~transfer
                    if channel_queue[channel, WAKES] != 1:
                        channel_queue[channel, WAKES] = 1
                        stirred[num_stirred] = channel
                        num_stirred += 1
                    continue
                first_device = 0
                copy = transfers[transfer, COPY]
                while copy >= 0:
                    device = copies[copy, ON_DEVICE]
                    bundle = copies[copy, BUNDLE]
                    while bundle >= 0:
                        for entry in range(
                            bundle_rows[bundle, FIRST_BUNDLED],
                            bundle_rows[bundle + 1, FIRST_BUNDLED],
                        ):
                            consumer = bundled[entry]
                            missing[consumer] -= 1
                            if missing[consumer] == 0:
                                enqueue(
                                    device_queue,
                                    ready,
                                    ready_since,
                                    ready_links,
                                    ready_keys,
                                    device,
                                    consumer,
                                    now,
                                )
                        bundle = bundle_next[bundle]
                    copy = copies[copy, NEXT_COPY]
                slot = first_crossing + transfers[transfer, CROSSING]
                left[slot] -= 1
                if left[slot] == 0:
                    memory[transfers[transfer, SENDER]] -= slot_bytes[slot]

            for position in range(num_stirred):
                channel = stirred[position]
                channel_queue[channel, WAKES] = -1
                while channel_free[channel] <= now:
                    transfer = next_transfer(
                        channel_queue, requested, transfer_links, transfer_keys, channel
                    )
                    if transfer < 0:
                        break
                    sent[transfer] = now
                    size = slot_bytes[first_crossing + transfers[transfer, CROSSING]]
                    left_at = now + size / bandwidth[channel]
                    channel_free[channel] = left_at + overhead[channel]
                    arrival = left_at + latency[channel]
                    num_events = push(event_times, event_codes, num_events, arrival, transfer)
                    copy = transfers[transfer, COPY]
                    while copy >= 0:
                        memory[copies[copy, ON_DEVICE]] += size
                        copy = copies[copy, NEXT_COPY]
                if channel_queue[channel, FIRST] >= 0 or channel_queue[channel, HEAP] >= 0:
                    channel_queue[channel, WAKES] = 0
                    num_events = push(
                        event_times, event_codes, num_events, channel_free[channel], ~channel
                    )
            num_stirred = 0
            if num_events > 0 and event_times[0] == now:
                continue

            device = first_device
            while device < num_devices:
                if free[device] > now:
                    device += 1
                    continue
                head, root = device_queue[device, HEAD], device_queue[device, ROOT]
                op = ready[device, head] if head < device_queue[device, TAIL] else -1
                heaped = root >= 0 and (op < 0 or precedes(ready_since, ready_keys, root, op))
                if heaped:
                    op = root
                source = device_queue[device, SOURCE]
                if source >= 0 and (
                    op < 0 or ready_since[op] > 0 or op >= source_rows[source, SOURCE_RANK]
                ):
                    device_queue[device, SOURCE] = source_next[source]
                    if record:
                        source_start[source] = now
                    op = source_rows[source, SOURCE_OP]
                    if op < 0:
                        memory[device] += source_bytes[source]
                        continue
                    ready_since[op] = 0.0
                elif op < 0:
                    device += 1
                    continue
                elif heaped:
                    device_queue[device, ROOT] = heap_rest(
                        ready_links, ready_since, ready_keys, root
                    )
                else:
                    device_queue[device, HEAD] = head + 1
                device_queue[device, RUNNING] = op
                memory[device] += op_bytes[op, ALLOCATES]
                seconds = op_seconds[op, device]
                if record:
                    op_start[op] = now
                finish = now
                if seconds > 0:
                    finish = now + seconds
                    free[device] = finish + launch_overhead[device]
                    group = op_rows[op, GROUP]
                    if group_start[group] < 0:
                        group_start[group] = now
                    if ready_since[op] == 0:
                        # Constants with higher numbers wait for it.
                        held_until[device] = free[device]
                        first_holder[device] = op if first_holder[device] == -1 else SEVERAL
                if finish == now:
                    if free[device] > now:
                        next_time[device] = free[device]
                    done[0] = device
                    num_done = 1
                    first_device = device
                    break
                next_time[device] = finish
                device += 1
            if num_done == 0:
                break
        # Lifetimes are half-open: only what is held when the instant is over counts.
        for device in range(num_devices):
            if held_until[device] > now:
                early_peak[device] = max(early_peak[device], memory[device])
            else:
                peak[device] = max(peak[device], memory[device])
        instant += 1
    clock[0] = now
    counts[REMAINING], counts[NUM_COPIES] = remaining, num_copies
    counts[NUM_TRANSFERS], counts[NUM_EVENTS] = num_transfers, num_events
    counts[INSTANTS] = instant
