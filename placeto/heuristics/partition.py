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
    """An undirected graph with weights, in compressed rows that hold every edge twice.

    Attributes:
        start: (num_vertices + 1,) row v is `neighbour[start[v]:start[v + 1]]`.
        neighbour: (2 num_edges,) the other vertex, rising within a row.
        edge_weight: (2 num_edges,) from 1.
        vertex_weight: (num_vertices,) from 1.
    """

    start: Ints
    neighbour: Ints
    edge_weight: Ints
    vertex_weight: Ints

    @property
    def num_vertices(self) -> int:
        """How many vertices there are."""
        return len(self.vertex_weight)

    @property
    def rows(self) -> Ints:
        """(2 num_edges,) the vertex that each entry's row belongs to."""
        return np.repeat(np.arange(self.num_vertices), np.diff(self.start))


def partition_graph(problem: PlacementProblem, devices: Ints) -> tuple[PartitionGraph, Ints]:
    """The groups as vertices, what they exchange as edges.

    A vertex's weight is its group's work: seconds on the fastest of the devices that it may be on,
    times that device's speed (`device_speeds`). An edge's weight is the bytes that its two groups
    exchange in both directions. Both are scaled so that they add up to 2**28, bytes only if they
    add up to more, and rounded to whole numbers. What would be 0 is 1: partitioners take no edges
    without weight, and no graph whose vertices weigh nothing.

    Args:
        problem: what is placed.
        devices: (n,) numbers of the devices that the parts are for.

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
    weight = _whole(exchanged, min(TOTAL, float(exchanged.sum())))
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    by_column = np.argsort(columns, kind="stable")
    start, entries = compressed(len(groups), rows[by_column], by_column)
    graph = PartitionGraph(
        start=start,
        neighbour=columns[entries],
        edge_weight=np.concatenate([weight, weight])[entries],
        vertex_weight=_whole(_work(problem, groups, devices), TOTAL),
    )
    return graph, groups


def cut_weight(graph: PartitionGraph, parts: Ints) -> int:
    """The weight of the edges between vertices of different parts.

    Args:
        graph: what is cut.
        parts: (num_vertices,) part of each vertex.
    """
    apart = parts[graph.rows] != parts[graph.neighbour]
    return int(graph.edge_weight[apart].sum()) // 2


def _work(problem: PlacementProblem, groups: Ints, devices: Ints) -> Floats:
    speeds = device_speeds(problem, devices)
    fastest = np.where(problem.allowed[np.ix_(groups, devices)], speeds, 0.0).argmax(axis=1)
    seconds: Floats = problem.group_seconds[groups, devices[fastest]] * speeds[fastest]
    return seconds


def _whole(values: Floats, total: float) -> Ints:
    weights: Ints = np.maximum(np.rint(values * (total / (values.sum() or 1.0))), 1)
    return weights.astype(np.int64)
