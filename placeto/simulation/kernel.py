"""The event-driven simulation kernel: semantics version 1, compiled.

At every instant t the kernel does, in this order and until nothing is left to do at t:

1. all ops that finish and all transfers that arrive at t: tensors become present, ops become
   ready, transfers are requested;
2. every free channel starts its first request;
3. the lowest-numbered free device that has a ready op starts its first one, and the kernel goes
   back to 1, since an op of zero duration finishes at t itself.

This is the order in which Placeto's released simulator takes the events of one instant.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from placeto.graph import Floats, Ints
from placeto.problem import SimulationArrays
from placeto.simulation.queues import dequeue, enqueue, pop, push

COPIES, TRANSFERS = range(2)


class Workspace(NamedTuple):
    """Everything that one simulation writes, so that it allocates nothing.

    A copy is a tensor on a device that did not produce it; a transfer brings one copy, or several
    on a multicast channel. Copies and transfers are numbered as they are requested.
    """

    start: Floats  # (num_ops,) s
    finish: Floats  # (num_ops,) s
    peak: Ints  # (num_devices,) bytes
    transfer_channel: Ints  # (num_edges,)
    transfer_tensor: Ints  # (num_edges,)
    transfer_request: Floats  # (num_edges,) s
    transfer_start: Floats  # (num_edges,) s
    transfer_keys: Ints  # (num_edges, 2) lowest consumer that waits, tensor
    transfer_links: Ints  # (num_edges, 2)
    transfer_copy: Ints  # (num_edges,) a copy that the transfer brings
    copy_next: Ints  # (num_edges,) another copy that the same transfer brings, or -1
    copy_device: Ints  # (num_edges,)
    copy_left: Ints  # (num_edges,) consumers that have not finished
    edge_copy: Ints  # (num_edges,) the copy that the consumer reads; -1: the producer's
    holders: Ints  # (num_tensors,) local consumers and transfers that are still to come
    op_device: Ints  # (num_ops,)
    missing: Ints  # (num_ops,) inputs that are not on the op's device yet
    ready: Floats  # (num_ops,) s
    op_keys: Ints  # (num_ops, 2) op, op
    op_links: Ints  # (num_ops, 2)
    device_ends: Ints  # (num_devices, 2)
    device_free: Floats  # (num_devices,) s
    memory: Ints  # (num_devices,) bytes in use
    copy_at: Ints  # (num_devices,) of the tensor at hand: its copy there, or -1
    channel_ends: Ints  # (num_channels, 2)
    channel_free: Floats  # (num_channels,) s
    transfer_on: Ints  # (num_channels,) of the tensor at hand: its transfer there, or -1
    event_times: Floats  # (capacity,) s
    event_codes: Ints  # (capacity,) op that finishes; num_ops + transfer that arrives; or wake-up
    counts: Ints  # (2,) how many copies and transfers there were


@njit(cache=True)
def workspace(p: SimulationArrays) -> Workspace:  # pragma: no cover
    """An empty workspace for a problem."""
    num_ops, num_devices = p.op_seconds.shape
    num_edges, num_channels = len(p.edge_consumer), len(p.bandwidth)
    capacity = num_edges + 2 * (num_devices + num_channels) + 1
    return Workspace(
        np.empty(num_ops),
        np.empty(num_ops),
        np.empty(num_devices, np.int64),
        np.empty(num_edges, np.int64),
        np.empty(num_edges, np.int64),
        np.empty(num_edges),
        np.empty(num_edges),
        np.empty((num_edges, 2), np.int64),
        np.empty((num_edges, 2), np.int64),
        np.empty(num_edges, np.int64),
        np.empty(num_edges, np.int64),
        np.empty(num_edges, np.int64),
        np.empty(num_edges, np.int64),
        np.empty(num_edges, np.int64),
        np.empty(len(p.tensor_bytes), np.int64),
        np.empty(num_ops, np.int64),
        np.empty(num_ops, np.int64),
        np.empty(num_ops),
        np.empty((num_ops, 2), np.int64),
        np.empty((num_ops, 2), np.int64),
        np.empty((num_devices, 2), np.int64),
        np.empty(num_devices),
        np.empty(num_devices, np.int64),
        np.empty(num_devices, np.int64),
        np.empty((num_channels, 2), np.int64),
        np.empty(num_channels),
        np.empty(num_channels, np.int64),
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.empty(2, np.int64),
    )


@njit(cache=True)
def run(p: SimulationArrays, devices: Ints, w: Workspace) -> float:  # pragma: no cover
    """Simulates one step.

    Args:
        p: the problem's arrays.
        devices: (num_groups,) device of each group.
        w: what the simulation writes.

    Returns:
        Step time in seconds.
    """
    # Local names: reading a field of a tuple inside the loops costs more than the loops do.
    (
        op_group, op_seconds, param_bytes, temp_bytes, output_start, outputs,
        tensor_producer, tensor_bytes, edge_start, edge_tensor, edge_consumer, input_start, inputs,
        launch_overhead, channel_between, bandwidth, latency, overhead, multicast,
    ) = p  # fmt: skip
    (
        start, finish, peak, transfer_channel, transfer_tensor, transfer_request, transfer_start,
        transfer_keys, transfer_links, transfer_copy, copy_next, copy_device, copy_left, edge_copy,
        holders, op_device, missing, ready, op_keys, op_links, device_ends, device_free, memory,
        copy_at, channel_ends, channel_free, transfer_on, event_times, event_codes, counts,
    ) = w  # fmt: skip
    num_ops, num_devices = op_seconds.shape
    num_channels = len(bandwidth)
    arrival_code, wake_up = num_ops, num_ops + len(edge_consumer)
    num_copies = num_transfers = num_waiting = 0

    memory[:] = 0
    device_ends[:] = -1
    channel_ends[:] = -1
    device_free[:] = 0.0
    channel_free[:] = 0.0
    copy_at[:] = -1
    transfer_on[:] = -1
    holders[:] = 0
    for op in range(num_ops):
        device = devices[op_group[op]]
        op_device[op] = device
        op_keys[op, 0] = op
        op_keys[op, 1] = op
        memory[device] += param_bytes[op]
        missing[op] = input_start[op + 1] - input_start[op]
        if missing[op] == 0:
            ready[op] = 0.0
            enqueue(device_ends, op_links, ready, op_keys, device, op)
    peak[:] = memory
    events = push(event_times, event_codes, 0, 0.0, wake_up)

    step_time = 0.0
    while events > 0:
        now = event_times[0]
        idle = False
        while not idle:
            while events > 0 and event_times[0] == now:
                code = event_codes[0]
                events = pop(event_times, event_codes, events)
                if code < arrival_code:
                    op = code
                    device = op_device[op]
                    # Free what the op held: temporary memory, inputs that nobody else needs.
                    memory[device] -= temp_bytes[op]
                    for position in range(input_start[op], input_start[op + 1]):
                        edge = inputs[position]
                        tensor = edge_tensor[edge]
                        copy = edge_copy[edge]
                        if copy < 0:
                            holders[tensor] -= 1
                            left = holders[tensor]
                        else:
                            copy_left[copy] -= 1
                            left = copy_left[copy]
                        if left == 0:
                            memory[device] -= tensor_bytes[tensor]
                    # Hand its outputs to its device, and request transfers to the others.
                    for position in range(output_start[op], output_start[op + 1]):
                        tensor = outputs[position]
                        copies_before, transfers_before = num_copies, num_transfers
                        for edge in range(edge_start[tensor], edge_start[tensor + 1]):
                            consumer = edge_consumer[edge]
                            target = op_device[consumer]
                            if target == device:
                                edge_copy[edge] = -1
                                holders[tensor] += 1
                                missing[consumer] -= 1
                                if missing[consumer] == 0:
                                    ready[consumer] = now
                                    enqueue(device_ends, op_links, ready, op_keys, target, consumer)
                                continue
                            copy = copy_at[target]
                            if copy < 0:
                                copy = num_copies
                                num_copies += 1
                                copy_at[target] = copy
                                copy_device[copy] = target
                                copy_left[copy] = 0
                                channel = channel_between[device, target]
                                transfer = transfer_on[channel] if multicast[channel] else -1
                                if transfer < 0:
                                    # Consumers come in ascending order: this is the lowest.
                                    transfer = num_transfers
                                    num_transfers += 1
                                    transfer_on[channel] = transfer
                                    transfer_channel[transfer] = channel
                                    transfer_tensor[transfer] = tensor
                                    transfer_request[transfer] = now
                                    transfer_keys[transfer, 0] = consumer
                                    transfer_keys[transfer, 1] = tensor
                                    transfer_copy[transfer] = -1
                                    holders[tensor] += 1
                                copy_next[copy] = transfer_copy[transfer]
                                transfer_copy[transfer] = copy
                            copy_left[copy] += 1
                            edge_copy[edge] = copy
                        for copy in range(copies_before, num_copies):
                            copy_at[copy_device[copy]] = -1
                        for transfer in range(transfers_before, num_transfers):
                            channel = transfer_channel[transfer]
                            transfer_on[channel] = -1
                            num_waiting += 1
                            enqueue(
                                channel_ends, transfer_links, transfer_request, transfer_keys,
                                channel, transfer,
                            )  # fmt: skip
                        if holders[tensor] == 0:
                            memory[device] -= tensor_bytes[tensor]
                elif code < wake_up:
                    # Hand a transferred tensor to the consumers that wait for it.
                    transfer = code - arrival_code
                    tensor = transfer_tensor[transfer]
                    copy = transfer_copy[transfer]
                    while copy >= 0:
                        for edge in range(edge_start[tensor], edge_start[tensor + 1]):
                            if edge_copy[edge] == copy:
                                consumer = edge_consumer[edge]
                                missing[consumer] -= 1
                                if missing[consumer] == 0:
                                    ready[consumer] = now
                                    device = op_device[consumer]
                                    enqueue(device_ends, op_links, ready, op_keys, device, consumer)
                        copy = copy_next[copy]
                    holders[tensor] -= 1
                    if holders[tensor] == 0:
                        memory[op_device[tensor_producer[tensor]]] -= tensor_bytes[tensor]

            if num_waiting > 0:
                for channel in range(num_channels):
                    while channel_ends[channel, 0] >= 0 and channel_free[channel] <= now:
                        transfer = dequeue(channel_ends, transfer_links, channel)
                        num_waiting -= 1
                        transfer_start[transfer] = now
                        size = tensor_bytes[transfer_tensor[transfer]]
                        sent = now + size / bandwidth[channel]
                        arrival = sent + latency[channel]
                        events = push(
                            event_times, event_codes, events, arrival, arrival_code + transfer
                        )
                        channel_free[channel] = sent + overhead[channel]
                        if channel_free[channel] > now:
                            events = push(
                                event_times, event_codes, events, channel_free[channel], wake_up
                            )
                        copy = transfer_copy[transfer]
                        while copy >= 0:
                            memory[copy_device[copy]] += size
                            copy = copy_next[copy]
                if events > 0 and event_times[0] == now:
                    continue

            idle = True
            for device in range(num_devices):
                if device_ends[device, 0] >= 0 and device_free[device] <= now:
                    op = dequeue(device_ends, op_links, device)
                    seconds = op_seconds[op, device]
                    start[op] = now
                    finish[op] = now + seconds
                    step_time = max(step_time, finish[op])
                    memory[device] += temp_bytes[op]
                    for position in range(output_start[op], output_start[op + 1]):
                        memory[device] += tensor_bytes[outputs[position]]
                    events = push(event_times, event_codes, events, finish[op], op)
                    device_free[device] = finish[op]
                    if seconds > 0:
                        device_free[device] += launch_overhead[device]
                        if device_free[device] > finish[op]:
                            events = push(
                                event_times, event_codes, events, device_free[device], wake_up
                            )
                    idle = False
                    break
        # Lifetimes are half-open: only what is held when the instant is over counts.
        for device in range(num_devices):
            peak[device] = max(peak[device], memory[device])
    counts[COPIES] = num_copies
    counts[TRANSFERS] = num_transfers
    return step_time


@njit(cache=True, parallel=True)
def run_batch(
    p: SimulationArrays,
    many: Ints,
    step_time: Floats,
    peak: Ints,
    group_start: Floats,
) -> None:  # pragma: no cover
    """Simulates many placements over all cores.

    Args:
        p: the problem's arrays.
        many: (batch, num_groups) device of each group.
        step_time: (batch,) filled with seconds.
        peak: (batch, num_devices) filled with bytes.
        group_start: (batch, num_groups) filled with the first start of an op of each group, in
            seconds; (batch, 0) where it is not wanted.
    """
    batch = len(step_time)
    chunks = min(batch, 16)
    for chunk in prange(chunks):
        w = workspace(p)
        for index in range(chunk * batch // chunks, (chunk + 1) * batch // chunks):
            step_time[index] = run(p, many[index], w)
            peak[index] = w.peak
            if group_start.shape[1] > 0:
                group_start[index] = np.inf
                for op in range(len(w.start)):
                    group = p.op_group[op]
                    group_start[index, group] = min(group_start[index, group], w.start[op])
