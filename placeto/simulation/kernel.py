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

from placeto.simulation.parts import _advance_in_parts
from placeto.simulation.queues import next_transfer, request
from placeto.simulation.state import GROUPS, OPS, STATE, Compiled, State
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
from placeto.support.heaps import allocation_free, pop, push, u
from placeto.support.jit import address_of, call_at


@allocation_free
def advance(c: Compiled, s: State, until: int, record: int) -> None:
    """Simulates from where a state stands, see `_advance`, compiled once for all who call it."""
    call_at(c.kernel, (c, s, until, record))


def with_kernel(c: Compiled) -> Compiled:
    """The compiled problem with the address of the code that `advance` calls in this process."""
    run = _advance_in_parts if len(c.path) + len(c.costs) + len(c.ranks) else _advance
    address = address_of(run, numba.typeof(c), STATE, types.int64, types.int64)
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
        ops, op_seconds, device_kind, _, _, local, held, c_slots, crossings, bundles, bundled,
        sources, _, _, _, _, launch_overhead, channel_between, bandwidth, latency, overhead,
        multicast, _, _, _, _, _, _,
    ) = c  # fmt: skip
    (
        device_of, status, devices, missing, links, source_next, ready, waiting_ops, copy_at, done,
        channels, stirred, copies, transfers, waiting, event_codes, event_times, slots,
        group_start, op_start, source_start, _, _, _, _,
    ) = s  # fmt: skip
    queues = (devices, ready, waiting_ops)
    num_devices = len(device_kind)
    num_columns = len(op_seconds) // max(len(missing), 1)
    num_slots = len(c_slots)
    fields = (ops, held, links, slots, local, missing)
    routes = (crossings, bundles, bundled, device_of, channel_between, multicast)
    carried = (links, slots, copy_at, copies, channels, transfers, waiting)
    first_crossing = num_slots - (len(crossings) - 1)
    counts = status[0]
    remaining, num_copies = counts.remaining, counts.num_copies
    num_transfers, num_events = counts.num_transfers, counts.num_events
    groups_wanted, ops_wanted = record >= GROUPS, record >= OPS
    num_stirred = 0
    now = counts.now
    # Whether the instant is about one device only, which that is, and when the others are due.
    alone, only, second = False, -1, np.inf

    while remaining > until:
        next_event = event_times[0] if num_events > 0 else np.inf
        # Whether any device may start an op, and whether memory grew anywhere.
        free_device = grew = False
        num_done = 0
        others = min(second, next_event)
        if alone and devices[u(only)].next_time < others:
            # Nothing has changed about the others. The processor foresees this branch and goes on;
            # for the minimum of all it would have to wait.
            now = devices[u(only)].next_time
        else:
            now, second = np.inf, np.inf
            for device in range(num_devices):
                time = devices[u(device)].next_time
                only = device if time < now else only
                second = min(second, max(now, time))
                now = min(now, time)
            alone = now < second and now < next_event
        if alone:
            done[0] = only
            num_done, free_device = arrive(devices, only, now)
        elif now <= next_event:
            for device in range(num_devices):
                if devices[u(device)].next_time == now:
                    done[u(num_done)] = device
                    finished, free = arrive(devices, device, now)
                    num_done += finished
                    free_device |= free
        now = min(now, next_event)
        first_device, last_device = (only, only + 1) if alone else (0, num_devices)
        while True:
            for position in range(num_done):
                device = done[u(position)]
                op = devices[u(device)].running
                devices[u(device)].running = -1
                remaining -= 1
                finish_in_group(fields, num_slots, queues, device, op, now)
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
                        queue = channels[u(channel)]
                        waiting[u(transfer)].since = now
                        request(channels, waiting, channel, transfer)
                        if queue.free <= now and queue.wakes != 1:
                            queue.wakes = 1
                            stirred[u(num_stirred)] = channel
                            num_stirred += 1
                        elif queue.free > now and queue.wakes < 0:
                            queue.wakes = 0
                            num_events = push(
                                event_times, event_codes, num_events, queue.free, ~channel
                            )
                    if slot.left == 0:
                        devices[u(device)].memory -= slot.bytes
            num_done = 0

            while num_events > 0 and event_times[0] == now:
                transfer = event_codes[0]
                num_events = pop(event_times, event_codes, num_events)
                if transfer < 0:
                    channel = ~transfer
                    if channels[u(channel)].wakes != 1:
                        channels[u(channel)].wakes = 1
                        stirred[u(num_stirred)] = channel
                        num_stirred += 1
                    continue
                alone = False
                first_device, last_device = 0, num_devices
                free_device |= deliver(
                    routes, carried, queues, missing, first_crossing, transfer, now
                )

            for position in range(num_stirred):
                channel = stirred[u(position)]
                queue = channels[u(channel)]
                queue.wakes = -1
                while queue.free <= now:
                    transfer = next_transfer(channels, waiting, channel)
                    if transfer < 0:
                        break
                    new = transfers[u(transfer)]
                    new.sent = now
                    size = slots[u(first_crossing + new.crossing)].bytes
                    left_at = now + size / bandwidth[u(channel)]
                    queue.free = left_at + overhead[u(channel)]
                    arrival = left_at + latency[u(channel)]
                    num_events = push(event_times, event_codes, num_events, arrival, transfer)
                    grew, alone = True, False
                    hold(transfers, copies, devices, transfer, size)
                if queue.first >= 0 or queue.root >= 0:
                    queue.wakes = 0
                    num_events = push(event_times, event_codes, num_events, queue.free, ~channel)
            num_stirred = 0

            if num_events > 0 and event_times[0] == now:
                continue

            if alone and not free_device and not grew and remaining > until:
                next_event = event_times[0] if num_events > 0 else np.inf
                if devices[u(only)].free < min(second, next_event):
                    # Nothing happens before the device is free: that is the next instant.
                    now = devices[u(only)].free
                    devices[u(only)].next_time = np.inf
                    free_device = True
            device = first_device if free_device else last_device
            while device < last_device:
                d = devices[u(device)]
                if d.free > now:
                    device += 1
                    continue
                op = next_op(queues, sources, source_next, source_start, device, now, ops_wanted)
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
                if seconds == 0 and own.crosses == ops[u(op + 1)].crosses:
                    # It is over at once, and concerns its own device only, which goes on.
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
                    first_device = device
                    break
                d.next_time = finish
                device += 1
            if num_done == 0:
                break
        # Lifetimes are half-open: only what is held when the instant is over counts.
        if grew:
            first_device, last_device = (only, only + 1) if alone else (0, num_devices)
            for device in range(first_device, last_device):
                devices[u(device)].peak = max(devices[u(device)].peak, devices[u(device)].memory)
    counts.now = now
    counts.remaining, counts.num_copies = remaining, num_copies
    counts.num_transfers, counts.num_events = num_transfers, num_events
