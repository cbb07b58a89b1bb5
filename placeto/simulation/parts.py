"""The simulation kernel for transfers of several parts: semantics version 2, compiled.

A transfer is a chain of parts, each on a resource that does one thing at a time: it may keep the
device that sends, takes the links of its channel's path, and may keep the device that receives. A
part is queued when the one before has started (a link adds its latency), and is done no earlier
than that: what is sent flows through.

At every instant t the kernel does, in this order and until nothing is left to do at t:

1. all ops that finish, all transfers that arrive and all parts that are due at t: tensors become
   present, ops become ready, parts are queued, on devices behind those before it, so that it is
   known at once when they will be over;
2. the lowest-numbered free link with a part in its queue starts the first one, and the kernel goes
   back to 1;
3. the lowest-numbered free device that has a ready op starts its first one, by rank where ops have
   ranks, and the kernel goes back to 1, since an op of zero duration finishes at t itself.

What is due at one instant is taken in the order in which the transfers were requested.

Of one link without ends this is version 1.
"""

import numpy as np

from placeto.simulation.queues import hand_over, next_by_rank, next_transfer, request
from placeto.simulation.records import Channels, Devices, Waiting
from placeto.simulation.state import GROUPS, OPS, Compiled, State
from placeto.simulation.transitions import (
    CONSTANTS,
    NONE,
    arrive,
    deliver,
    finish_in_group,
    hand_out,
    hold,
    next_op,
)
from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.heaps import allocation_free, expanded, pop, push, u


@allocation_free
def end_seconds(cost_start: Ints, costs: Floats, row: int, size: int) -> float:
    """What a transfer costs an end: sending for row 2 channel, receiving for the one after."""
    found = 0.0
    for index in range(cost_start[u(row)], cost_start[u(row + 1)]):
        if size >= costs[index, 0]:
            found = costs[index, 1] + costs[index, 2] * size
    return found


@expanded
def queue_part(
    channels: Channels, waiting: Waiting, stirred: Int32s, num_stirred: int, event_times: Floats,
    event_codes: Int32s, num_events: int, queue: int, transfer: int, now: float,
) -> tuple[int, int]:  # fmt: skip
    """Adds a transfer to the queue of a link; counts the stirred, and the events."""
    waiting[u(transfer)].since = now
    request(channels, waiting, queue, transfer)
    link = channels[u(queue)]
    if link.free <= now:
        if link.wakes != 1:
            link.wakes = 1
            stirred[u(num_stirred)] = queue
            num_stirred += 1
    elif link.wakes < 0:
        link.wakes = 0
        num_events = push(event_times, event_codes, num_events, link.free, ~queue)
    return num_stirred, num_events


@expanded
def keep(devices: Devices, device: int, now: float, seconds: float) -> float:
    """Has a device send or receive, after what it was given before; returns when it begins.

    The op that runs there has to wait meanwhile, or the next one does.
    """
    d = devices[u(device)]
    begin: float = max(now, d.carries_until)
    d.carries_until = begin + seconds
    d.free = d.free + seconds if d.free > now else d.carries_until
    d.next_time = d.next_time + seconds if d.running >= 0 else d.free
    return begin


@allocation_free
def _advance_in_parts(c: Compiled, s: State, until: int, record: int) -> None:
    """Simulates from where a state stands, as `_advance` of the kernel of version 1 does."""
    (
        ops, op_seconds, device_kind, _, _, local, held, c_slots, crossings, bundles, bundled,
        sources, ranks, signal_start, signals, _, launch_overhead, channel_between, bandwidth,
        latency, overhead, multicast, path_start, path, links_of, cost_start, costs, _,
    ) = c  # fmt: skip
    (
        device_of, status, devices, missing, links, source_next, ready, waiting_ops, copy_at, done,
        channels, stirred, copies, transfers, waiting, event_codes, event_times, slots,
        group_start, op_start, source_start, parts, part_start, op_finish, turns,
    ) = s  # fmt: skip
    queues = (devices, ready, waiting_ops, ranks, turns, status)
    num_devices, num_channels = len(device_kind), len(bandwidth)
    num_columns = len(op_seconds) // max(len(missing), 1)
    num_slots = len(c_slots)
    fields = (ops, held, links, slots, local, missing)
    routes = (crossings, bundles, bundled, device_of, channel_between, multicast)
    carried = (links, slots, copy_at, copies, channels, transfers, waiting)
    longest = len(part_start) // max(len(parts), 1)  # chain
    first_crossing = num_slots - (len(crossings) - 1)
    counts = status[0]
    remaining, num_copies = counts.remaining, counts.num_copies
    num_transfers, num_events = counts.num_transfers, counts.num_events
    groups_wanted, ops_wanted = record >= GROUPS, record >= OPS
    num_stirred = 0
    now = counts.now

    while remaining > until:
        now = event_times[0] if num_events > 0 else np.inf
        # Whether any device may start an op, and whether memory grew anywhere.
        free_device = grew = False
        for device in range(num_devices):
            now = min(now, devices[u(device)].next_time)
        num_done = 0
        for device in range(num_devices):
            if devices[u(device)].next_time == now:
                done[u(num_done)] = device
                finished, free = arrive(devices, device, now)
                num_done += finished
                free_device |= free
        while True:
            for position in range(num_done):
                device = done[u(position)]
                op = devices[u(device)].running
                devices[u(device)].running = -1
                if ops_wanted:
                    op_finish[u(op)] = now
                remaining -= 1
                finish_in_group(fields, num_slots, queues, device, op, now)
                if len(signal_start) > 0:
                    for entry in range(signal_start[u(op)], signal_start[u(op + 1)]):
                        other = device_of[u(ops[u(signals[u(entry)])].group)]
                        hand_over(queues, missing, signals, entry, entry + 1, other, now)
                        free_device |= devices[u(other)].free <= now
                # Hand its outputs to other groups, on its device or elsewhere.
                for tensor in range(ops[u(op)].crosses, ops[u(op + 1)].crosses):
                    slot = slots[u(first_crossing + tensor)]
                    transfers_before = num_transfers
                    num_copies, num_transfers = hand_out(
                        routes, carried, queues, missing, num_slots, first_crossing, tensor, device,
                        now, num_copies, num_transfers,
                    )  # fmt: skip
                    for transfer in range(transfers_before, num_transfers):
                        channel = transfers[u(transfer)].channel
                        first = path_start[u(channel)]
                        part = parts[u(transfer)]
                        part.asked, part.done, part.began = now, 0.0, -1.0
                        part.at, part.bytes, part.receives = 0, slot.bytes, 0.0
                        part.links = max(path_start[u(channel + 1)] - first, 1)
                        seconds = 0.0
                        if len(costs) > 0:
                            part.receives = end_seconds(
                                cost_start, costs, 2 * channel + 1, slot.bytes
                            )
                            seconds = end_seconds(cost_start, costs, 2 * channel, slot.bytes)
                        if seconds > 0:
                            begins = keep(devices, device, now, seconds)
                            part.sent = part.done = begins + seconds
                            if ops_wanted:
                                part_start[u(longest * transfer)] = begins
                            if begins > now:
                                num_events = push(
                                    event_times, event_codes, num_events, begins, transfer
                                )
                                continue
                            part.began = now
                            hold(transfers, copies, devices, transfer, slot.bytes)
                            grew = True
                        queue = channel
                        if path_start[u(channel + 1)] > first:
                            queue = num_channels + path[u(first)]
                        num_stirred, num_events = queue_part(
                            channels, waiting, stirred, num_stirred, event_times, event_codes,
                            num_events, queue, transfer, now,
                        )  # fmt: skip
                    if slot.left == 0:
                        devices[u(device)].memory -= slot.bytes
            num_done = 0

            while num_events > 0 and event_times[0] == now:
                transfer = event_codes[0]
                num_events = pop(event_times, event_codes, num_events)
                if transfer < 0:
                    queue = ~transfer
                    if channels[u(queue)].wakes != 1:
                        channels[u(queue)].wakes = 1
                        stirred[u(num_stirred)] = queue
                        num_stirred += 1
                    continue
                moved, part = transfers[u(transfer)], parts[u(transfer)]
                at = part.at
                if at <= part.links:
                    if part.began < 0:
                        part.began = now
                        hold(transfers, copies, devices, transfer, part.bytes)
                        grew = True
                    if at == part.links:
                        seconds = part.receives
                        begins = keep(devices, copies[u(moved.copy)].device, now, seconds)
                        part.sent = part.done = max(begins + seconds, part.done)
                        if ops_wanted:
                            part_start[u(longest * transfer + at + 1)] = begins
                        part.at += 1
                        num_events = push(event_times, event_codes, num_events, part.done, transfer)
                        continue
                    channel = queue = moved.channel
                    first = path_start[u(channel)]
                    if path_start[u(channel + 1)] > first:
                        queue = num_channels + path[u(first + at)]
                    num_stirred, num_events = queue_part(
                        channels, waiting, stirred, num_stirred, event_times, event_codes,
                        num_events, queue, transfer, now,
                    )  # fmt: skip
                    continue
                free_device |= deliver(
                    routes, carried, queues, missing, first_crossing, transfer, now
                )

            if num_stirred > 0:
                lowest = 0
                for position in range(1, num_stirred):
                    if stirred[u(position)] < stirred[u(lowest)]:
                        lowest = position
                link = stirred[u(lowest)]
                num_stirred -= 1
                stirred[u(lowest)] = stirred[u(num_stirred)]
                queue_at = channels[u(link)]
                queue_at.wakes = -1
                transfer = next_transfer(channels, waiting, link) if queue_at.free <= now else -1
                if transfer >= 0:
                    part = parts[u(transfer)]
                    size = part.bytes
                    if part.began < 0:
                        part.began = now
                        hold(transfers, copies, devices, transfer, size)
                        grew = True
                    if ops_wanted:
                        part_start[u(longest * transfer + part.at + 1)] = now
                    if link < num_channels:
                        left_at = now + size / bandwidth[u(link)]
                        queue_at.free = left_at + overhead[u(link)]
                        later = latency[u(link)]
                    else:
                        left_at = now + size / links_of[link - num_channels, 0]
                        queue_at.free = left_at
                        later = links_of[link - num_channels, 1]
                    part.sent = max(left_at, part.done)
                    part.done = part.sent + later
                    part.at += 1
                    due = now + later
                    if part.at == part.links and part.receives == 0:
                        part.at += 1
                        due = part.done
                    num_events = push(event_times, event_codes, num_events, due, transfer)
                if queue_at.first >= 0 or queue_at.root >= 0:
                    if queue_at.free > now:
                        queue_at.wakes = 0
                        num_events = push(
                            event_times, event_codes, num_events, queue_at.free, ~link
                        )
                    else:
                        queue_at.wakes = 1
                        stirred[u(num_stirred)] = link
                        num_stirred += 1
                continue
            if not free_device:
                break

            device = 0
            while device < num_devices:
                d = devices[u(device)]
                if d.free > now:
                    device += 1
                    continue
                if len(ranks) > 0:
                    op = next_by_rank(ready, waiting_ops, ranks, turns, device)
                else:
                    op = next_op(
                        queues, sources, source_next, source_start, device, now, ops_wanted
                    )
                if op == NONE:
                    device += 1
                    continue
                if op == CONSTANTS:
                    grew = True
                    continue
                own = ops[u(op)]
                d.memory += own.allocates
                grew = True
                seconds = op_seconds[u(num_columns * op + d.kind)]
                if ops_wanted:
                    op_start[u(op)] = now
                signal = len(signal_start) > 0 and signal_start[u(op)] < signal_start[u(op + 1)]
                if seconds == 0 and own.crosses == ops[u(op + 1)].crosses and not signal:
                    # It is over at once, and concerns its own device only, which goes on.
                    if ops_wanted:
                        op_finish[u(op)] = now
                    remaining -= 1
                    finish_in_group(fields, num_slots, queues, device, op, now)
                    continue
                d.running = op
                finish = now
                if seconds > 0:
                    finish = now + seconds
                    d.free = finish + launch_overhead[u(device)]
                    if groups_wanted and group_start[u(own.group)] < 0:
                        group_start[u(own.group)] = now
                if finish == now:
                    if d.free > now:
                        d.next_time = d.free
                    done[0] = device
                    num_done = 1
                    break
                d.next_time = finish
                device += 1
            if device == num_devices:
                break
        # Lifetimes are half-open: only what is held when the instant is over counts.
        if grew:
            for device in range(num_devices):
                devices[u(device)].peak = max(devices[u(device)].peak, devices[u(device)].memory)
        counts.instant += 1
    counts.now = now
    counts.remaining, counts.num_copies = remaining, num_copies
    counts.num_transfers, counts.num_events = num_transfers, num_events
