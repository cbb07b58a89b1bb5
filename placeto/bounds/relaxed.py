"""What bounds know of a problem: ops in topological order, classes of devices, delays of edges."""

from typing import NamedTuple

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.alone import seconds_alone
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import compressed, topological_order


class Classes(NamedTuple):
    """Devices of one kind and launch overhead, taken together.

    A bound that knows only the class of an op's device, and whether two ops are on one device,
    holds for every placement: pins within a class and slower channels are relaxed.
    """

    of_device: Ints  # (num_devices,) class
    first: Ints  # (num_classes,) a device of each
    size: Ints  # (num_classes,) devices
    overhead: Floats  # (num_classes,) s, launch overhead


class Relaxed(NamedTuple):
    """A problem for the compiled functions; ops are numbered in topological order.

    An edge leads from a producer to a consumer; tensors between the same two are one edge, and the
    slowest of them counts.
    """

    start: Ints  # (num_ops + 1,) edges of each consumer
    producer: Ints  # (num_edges,)
    wait: Floats  # (num_edges, num_classes) s from finish to start on the same device
    seconds: Floats  # (num_ops, num_classes) s
    group: Ints  # (num_ops,)
    allowed: Bools  # (num_groups, num_classes)
    several: Bools  # (num_classes,) whether the class has another device
    overhead: Floats  # (num_classes,) s
    # (num_edges, num_classes, num_classes) s from the producer's end on a device of the first class
    # to the arrival on another of the second, at least; infinite if there is no such pair
    transfer: Floats
    lag_first: bool  # whether the overhead comes before the op, as it does in the mirror


def device_classes(problem: PlacementProblem) -> Classes:
    """The classes of a cluster's devices."""
    keys = [(d.kind, d.launch_overhead_seconds) for d in problem.cluster.devices]
    distinct = list(dict.fromkeys(keys))
    of_device = np.array([distinct.index(key) for key in keys])
    first = np.array([keys.index(key) for key in distinct])
    overhead = problem.arrays.launch_overhead[first]
    return Classes(of_device, first, np.bincount(of_device), overhead)


def allowed_classes(allowed: Bools, classes: Classes) -> Bools:
    """(num_groups, num_classes) whether any device of the class is allowed."""
    columns = [allowed[:, classes.of_device == c].any(axis=1) for c in range(len(classes.size))]
    return np.stack(columns, axis=1)


def relax(problem: PlacementProblem, allowed: Bools, pairs: tuple[Ints, Ints]) -> Relaxed:
    """The relaxed problem; (num_groups, num_devices) `allowed` tells where groups may be.

    Pairs are ops of one group, first and second, two (n,) arrays: the second starts when the device
    is free of the first, whatever the placement.
    """
    graph, num_ops = problem.graph, problem.graph.num_ops
    classes = device_classes(problem)
    source, target = (np.concatenate(ends) for ends in zip(graph.op_edges, pairs, strict=True))
    order = topological_order(num_ops, source, target)
    position = np.argsort(order)
    key, index = np.unique(position[target] * num_ops + position[source], return_inverse=True)
    start, producer = compressed(num_ops, key // num_ops, key % num_ops)
    seconds = problem.op_seconds[np.ix_(order, classes.first)]
    wait = np.where(seconds > 0, classes.overhead, 0.0)[producer]
    return Relaxed(
        start=start,
        producer=producer,
        wait=wait,
        seconds=seconds,
        group=problem.op_group[order],
        allowed=allowed_classes(allowed, classes),
        several=classes.size > 1,
        overhead=classes.overhead,
        transfer=_transfers(problem, classes, index[: graph.num_edges], len(producer)),
        lag_first=False,
    )


def _transfers(problem: PlacementProblem, classes: Classes, edge: Ints, num_edges: int) -> Floats:
    """`Relaxed.transfer`, of the graph's edges by the (num_edges,) `edge` that each is part of.

    What a transfer takes that nothing hinders (`seconds_alone`), by the fastest channel between the
    classes.
    """
    arrays, cluster = problem.arrays, problem.cluster
    size = problem.graph.tensor_bytes[problem.graph.edge_tensor]
    found = np.full((num_edges, len(classes.size), len(classes.size)), np.inf)
    alike: dict[tuple[int, int, object], int] = {}
    for one, other in np.argwhere(arrays.channel_between >= 0).tolist():
        number = int(arrays.channel_between[one, other])
        channel = cluster.channels[number]
        figures = channel.bandwidth, channel.latency_seconds, channel.send, channel.receive
        alike[int(classes.of_device[one]), int(classes.of_device[other]), figures] = number
    for (source, target, _), number in alike.items():
        channels = np.full(len(size), number)
        seconds = seconds_alone(arrays, channels, size)
        slowest = np.zeros(num_edges)
        np.maximum.at(slowest, edge, seconds)
        found[:, source, target] = np.minimum(found[:, source, target], slowest)
    return found


def mirror(relaxed: Relaxed) -> Relaxed:
    """The same with time running backwards: op o is op num_ops - 1 - o, ends are starts."""
    num_ops, num_edges = len(relaxed.group), len(relaxed.producer)
    consumer = np.repeat(np.arange(num_ops), np.diff(relaxed.start))
    start, edges = compressed(num_ops, num_ops - 1 - relaxed.producer, np.arange(num_edges))
    return relaxed._replace(
        start=start,
        producer=num_ops - 1 - consumer[edges],
        wait=relaxed.wait[edges],
        seconds=relaxed.seconds[::-1].copy(),
        group=relaxed.group[::-1].copy(),
        transfer=relaxed.transfer[edges].transpose(0, 2, 1).copy(),
        lag_first=not relaxed.lag_first,
    )
