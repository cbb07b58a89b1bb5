"""Step times that no completion of a partial placement can be below."""

from typing import NamedTuple

import numpy as np
from numba import prange

from placeto.bounds.memory import least_memory
from placeto.problem import PlacementProblem
from placeto.simulation.parts import end_seconds
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import compressed
from placeto.support.jit import inner, njit

UNPLACED = -1


class Relaxation(NamedTuple):
    """A problem as the bounds read it. Ops are renumbered along the topological order.

    An op's `held` is its seconds and, unless these are 0, its device's launch overhead.
    """

    op_group: Ints  # (num_ops,)
    seconds: Floats  # (num_ops, num_devices + 1), the last for an unplaced op: the least allowed
    held: Floats  # (num_ops, num_devices + 1), likewise
    producer: Ints  # (num_edges,) op; ascending
    consumer: Ints  # (num_edges,) op
    edge_bytes: Ints  # (num_edges,)
    # Tensors with consumers in other groups than their own:
    sender: Ints  # (num_sent,) op
    sent_bytes: Ints  # (num_sent,)
    reader_start: Ints  # (num_sent + 1,) compressed rows of ops in other groups
    readers: Ints  # (num_readers,)
    launch_overhead: Floats  # (num_devices,)
    channel_between: Ints  # (num_devices, num_devices)
    first_on_channel: Ints  # (num_devices, num_devices) lowest device that a transfer also serves
    bandwidth: Floats  # (num_channels,)
    latency: Floats  # (num_channels,)
    overhead: Floats  # (num_channels,)
    cost_start: Ints  # (2 num_channels + 1,) of `costs`, see `ClusterArrays`
    costs: Floats  # (num_costs, 3)
    weights: Floats  # (num_weights, num_devices) of the devices' work, each row adds up to 1
    work: Floats  # (num_weights, num_groups, num_devices + 1) weighted held seconds
    parameters: Ints  # (num_groups,) bytes
    running: Ints  # (num_groups, num_devices) bytes besides, while some op runs
    memory_limit: Ints  # (num_devices,) bytes


def relaxation_of(problem: PlacementProblem) -> Relaxation:
    """What the bounds of a problem are worked out from."""
    p, graph, allowed = problem.arrays, problem.graph, problem.allowed
    order = graph.topological_order
    number = np.empty(graph.num_ops, dtype=np.int64)
    number[order] = np.arange(graph.num_ops)
    op_group = problem.op_group[order]
    seconds = np.where(allowed[op_group], problem.op_seconds[order], np.inf)
    held = seconds + np.where(seconds > 0, p.launch_overhead, 0.0)
    group_held = np.zeros(allowed.shape)
    np.add.at(group_held, op_group, held)
    weights = _weights(held)
    producer, consumer = (number[ends] for ends in graph.op_edges)
    by_producer = np.argsort(producer, kind="stable")
    leaves = op_group[producer] != op_group[consumer]
    sent = np.unique(graph.edge_tensor[leaves])
    reader_start, readers = compressed(
        len(sent), np.searchsorted(sent, graph.edge_tensor[leaves]), consumer[leaves]
    )
    parameters = problem.group_parameters
    alike = p.channel_between[:, :, None] == p.channel_between[:, None]
    carries = np.append(p.multicast, False)[p.channel_between]  # not from a device to itself
    return Relaxation(
        op_group=op_group,
        seconds=_with_least(seconds),
        held=_with_least(held),
        producer=producer[by_producer],
        consumer=consumer[by_producer],
        edge_bytes=graph.tensor_bytes[graph.edge_tensor][by_producer],
        sender=number[graph.tensor_producer[sent]],
        sent_bytes=graph.tensor_bytes[sent],
        reader_start=reader_start,
        readers=readers,
        launch_overhead=p.launch_overhead,
        channel_between=p.channel_between,
        first_on_channel=np.where(carries, alike.argmax(axis=2), np.arange(problem.num_devices)),
        bandwidth=p.bandwidth,
        latency=p.latency,
        overhead=p.overhead,
        cost_start=p.cost_start,
        costs=p.costs,
        weights=weights,
        work=_with_least(weights[:, None, :] * group_held),
        parameters=parameters,
        running=least_memory(problem) - parameters[:, None],
        memory_limit=problem.memory_limit,
    )


def _with_least(values: Floats) -> Floats:
    return np.concatenate([values, values.min(axis=-1, keepdims=True)], axis=-1)


def _weights(held: Floats) -> Floats:
    """Equal weights, and weights by the devices' speed; see `bounds.work_bound`."""
    total = np.where(np.isfinite(held), held, 0.0).sum(axis=0)
    speed = 1 / np.maximum(total, np.finfo(float).tiny)
    speed = np.maximum(speed / speed.max(), 1e-9)
    return np.array([np.full(len(total), 1 / len(total)), speed / speed.sum()])


@njit(cache=True, parallel=True)
def bounds(r: Relaxation, many: Ints) -> tuple[Floats, Ints]:
    """Bounds for all completions of partial placements, `UNPLACED` where groups are to be placed.

    Returns:
        (batch,) seconds that no completion's step time is below, but for rounding, and (batch,)
        bytes that the peaks of every completion exceed the memory limits by.
    """
    seconds = np.empty(len(many))
    excess = np.empty(len(many), np.int64)
    for row in prange(len(many)):
        seconds[row] = _least_seconds(r, many[row])
        excess[row] = _least_excess(r, many[row])
    return seconds, excess


@inner(cache=True)
def _least_excess(r: Relaxation, devices: Ints) -> int:
    total = 0
    for device in range(len(r.memory_limit)):
        parameters = running = 0
        for group in range(len(devices)):
            if devices[group] == device:
                parameters += r.parameters[group]
                running = max(running, r.running[group, device])
        total += max(parameters + running - r.memory_limit[device], 0)
    return total


@inner(cache=True)
def _least_seconds(r: Relaxation, devices: Ints) -> float:
    # Local names: reading a field of a tuple inside the loops costs more than the loops do.
    op_group, producer, consumer, edge_bytes = r.op_group, r.producer, r.consumer, r.edge_bytes
    channel_between, bandwidth, latency = r.channel_between, r.bandwidth, r.latency
    num_ops, num_edges = len(op_group), len(producer)
    where = np.empty(num_ops, np.int64)
    seconds, held = np.empty(num_ops), np.empty(num_ops)
    for op in range(num_ops):
        device = devices[op_group[op]]
        where[op] = device
        seconds[op], held[op] = r.seconds[op, device], r.held[op, device]
    head = np.zeros(num_ops)  # seconds before an op can start
    between = np.empty(num_edges)  # seconds from a producer's start to a consumer's
    for edge in range(num_edges):
        op, other = producer[edge], consumer[edge]
        source, target = where[op], where[other]
        if op_group[op] == op_group[other] or (source == target and source != UNPLACED):
            between[edge] = held[op]
        elif source == UNPLACED or target == UNPLACED:
            between[edge] = seconds[op]
        else:
            channel = channel_between[source, target]
            carried = edge_bytes[edge] / bandwidth[channel]
            if len(r.costs) > 0:
                for row in (2 * channel, 2 * channel + 1):
                    carried = max(
                        carried, end_seconds(r.cost_start, r.costs, row, edge_bytes[edge])
                    )
            between[edge] = seconds[op] + carried + latency[channel]
        head[other] = max(head[other], head[op] + between[edge])
    after = seconds.copy()  # seconds from an op's start to the end of the step
    for edge in range(num_edges - 1, -1, -1):
        op = producer[edge]
        after[op] = max(after[op], between[edge] + after[consumer[edge]])
    longest, tail = max((head + after).max(), _work(r, devices)), after - seconds
    for order in (np.arange(num_ops), np.arange(num_ops - 1, -1, -1)):
        longest = max(longest, _one_at_a_time(r, order, where, held, head, tail))
    return max(longest, _transfers(r, where, head + seconds, after))


@inner(cache=True)
def _work(r: Relaxation, devices: Ints) -> float:
    """Weighted work of the devices; of an unplaced group, where it weighs least."""
    most = 0.0
    for number in range(len(r.weights)):
        total = 0.0
        for group in range(len(devices)):
            total += r.work[number, group, devices[group]]
        for device in range(len(r.launch_overhead)):
            total -= r.weights[number, device] * r.launch_overhead[device]
        most = max(most, total)
    return most


@inner(cache=True)
def _one_at_a_time(
    r: Relaxation, order: Ints, where: Ints, held: Floats, head: Floats, tail: Floats
) -> float:
    """Any ops of one device: the least head, all their work, the least tail.

    Taken for the first ops of `order` on each device, as many as are worst.
    """
    count = len(r.launch_overhead)
    work = -r.launch_overhead  # the last op's lies beyond its finish
    least_head, least_tail = np.full(count, np.inf), np.full(count, np.inf)
    longest = 0.0
    for op in order:
        device = where[op]
        if device == UNPLACED or held[op] == 0:
            continue
        work[device] += held[op]
        least_head[device] = min(least_head[device], head[op])
        least_tail[device] = min(least_tail[device], tail[op])
        longest = max(longest, least_head[device] + work[device] + least_tail[device])
    return longest


@inner(cache=True)
def _transfers(r: Relaxation, where: Ints, finish: Floats, after: Floats) -> float:
    """All transfers of one channel: the least head, all their seconds, the least tail."""
    count = len(r.bandwidth)
    work = -r.overhead  # the last transfer's lies beyond its arrival
    least_head, least_tail = np.full(count, np.inf), np.full(count, np.inf)
    # What comes after a tensor's transfer to each device; for several, the first of them.
    tail = np.empty(len(r.launch_overhead))
    for tensor in range(len(r.sender)):
        op = r.sender[tensor]
        source = where[op]
        if source == UNPLACED:
            continue
        tail[:] = -1.0
        for position in range(r.reader_start[tensor], r.reader_start[tensor + 1]):
            reader = r.readers[position]
            if where[reader] != UNPLACED and where[reader] != source:
                first = r.first_on_channel[source, where[reader]]
                tail[first] = max(tail[first], after[reader])
        for device in range(len(tail)):
            if tail[device] >= 0:
                channel = r.channel_between[source, device]
                sent = r.sent_bytes[tensor] / r.bandwidth[channel]
                work[channel] += sent + r.overhead[channel]
                least_head[channel] = min(least_head[channel], finish[op])
                least_tail[channel] = min(least_tail[channel], r.latency[channel] + tail[device])
    longest = 0.0
    for channel in range(count):
        if least_head[channel] < np.inf:
            longest = max(longest, least_head[channel] + work[channel] + least_tail[channel])
    return longest
