"""The group graph as partitioners want it: undirected, with whole numbers as weights."""

from dataclasses import dataclass

import numpy as np

from placeto.heuristics.costs import device_speeds
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import compressed

# What the weights of all vertices, and those of all edges, add up to but for rounding. The
# numbers of METIS may have 32 bits, and it adds up both directions of every edge.
TOTAL = 2**28


@dataclass(frozen=True, eq=False)
class PartitionGraph:
    """An undirected graph with weights, in compressed rows that hold every edge twice."""

    start: Ints  # (num_vertices + 1,) row v is `neighbour[start[v]:start[v + 1]]`
    neighbour: Ints  # (2 num_edges,) the other vertex, rising within a row
    edge_weight: Ints  # (2 num_edges,) from 1
    vertex_weight: Ints  # (num_vertices,) from 1


def partition_graph(problem: PlacementProblem, devices: Ints) -> tuple[PartitionGraph, Ints]:
    """The groups as vertices, what they exchange as edges, for parts on (n,) devices.

    A vertex's weight is its group's work: seconds on the fastest of the devices that it may be on,
    times that device's speed (`device_speeds`). An edge's weight is the bytes that its two groups
    exchange in both directions. Both are scaled so that they add up to 2**28, bytes only if they
    add up to more, and rounded to whole numbers. What would be 0 is 1: partitioners take no edges
    without weight, and no graph whose vertices weigh nothing.

    Returns:
        The graph, and the (num_vertices,) groups that its vertices are: those that may be on one
        of the devices, in rising order. There are no edges to others.
    """
    groups = np.flatnonzero(problem.allowed[:, devices].any(axis=1))
    source, target, size = problem.group_edges
    vertex = np.full(problem.num_groups, -1)
    vertex[groups] = np.arange(len(groups))
    low = np.minimum(vertex[source], vertex[target])
    high = np.maximum(vertex[source], vertex[target])
    inside = low >= 0
    key, edge = np.unique(low[inside] * len(groups) + high[inside], return_inverse=True)
    exchanged = np.zeros(len(key))
    np.add.at(exchanged, edge, size[inside])
    low, high = key // len(groups), key % len(groups)
    weight = np.tile(_whole(exchanged, min(TOTAL, float(exchanged.sum()))), 2)
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    by_column = np.argsort(columns, kind="stable")
    start, entries = compressed(len(groups), rows[by_column], by_column)
    speeds = device_speeds(problem, devices)
    fastest = np.where(problem.allowed[np.ix_(groups, devices)], speeds, 0.0).argmax(axis=1)
    work = _whole(problem.group_seconds[groups, devices[fastest]] * speeds[fastest], TOTAL)
    return PartitionGraph(start, columns[entries], weight[entries], work), groups


def _whole(values: Floats, total: float) -> Ints:
    weights = np.maximum(np.rint(values * (total / (values.sum() or 1.0))), 1)
    return weights.astype(np.int64)
