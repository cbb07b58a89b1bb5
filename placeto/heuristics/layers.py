"""How deep in the model what is: the row in which it is cut into stages."""

import numpy as np

from placeto.graph import ComputationGraph
from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import levels
from placeto.support.jit import njit


def layer_positions(problem: PlacementProblem) -> list[Ints]:
    """(num_groups,) how deep in the model each group is, ranks from 0; by one way, or by several.

    A forward op and its gradient are about as deep. In a step of several microbatches the gradient
    is where the forward ops are whose outputs it reads. Otherwise, and of such steps as the second
    way, what counts is how far an op is from the step's nearer end: of a recurrent network, that
    keeps together what adds up the gradients of all times.
    """
    graph = problem.graph
    count, edges = graph.num_ops, graph.op_edges
    depths = [np.minimum(levels(count, *edges), levels(count, *reversed(edges))).astype(float)]
    if graph.num_microbatches > 1:
        depths.insert(0, _depths_by_phases(graph))
    # Half of a group's work is before and half behind its depth; a group may have both passes.
    weight = np.where(np.isfinite(problem.op_seconds), problem.op_seconds, 0).max(axis=1) + 1e-9
    total = np.bincount(problem.op_group, weight)
    work = (np.bincount(problem.op_group, weight * depth) for depth in depths)
    return [np.argsort(np.argsort(each / total, kind="stable")) for each in work]


def _depths_by_phases(graph: ComputationGraph) -> Floats:
    """(num_ops,) how many forward ops of its microbatch are before an op, or before what it reads.

    Weights and inputs are where they are read, updates where their gradients are.
    """
    source, target = graph.op_edges
    forward = graph.is_forward & (graph.microbatch >= 0)
    inside = forward[source] & forward[target]
    depth = np.full(graph.num_ops, np.inf)
    known = target[inside]
    depth[known] = levels(graph.num_ops, source[inside], target[inside])[known]
    start, edges = graph.inputs
    _spread(graph.topological_order, start, source[edges], graph.phase, graph.is_forward, depth)
    return np.where(np.isfinite(depth), depth, 0)


@njit(cache=True)
def _spread(
    order: Ints, start: Ints, producers: Ints, phase: Ints, is_forward: Bools, depth: Floats
) -> None:
    """Gives each op a depth from those of the ops that it is joined to, where it has none."""
    _to_producers(order, start, producers, is_forward, depth)
    for op in order:
        if is_forward[op]:
            continue
        deepest, shallowest = -1.0, np.inf
        for position in range(start[op], start[op + 1]):
            producer = producers[position]
            if phase[producer] == phase[op]:
                shallowest = min(shallowest, depth[producer])
            elif depth[producer] < np.inf:
                deepest = max(deepest, depth[producer])
        depth[op] = deepest if deepest >= 0 else shallowest
    _to_producers(order, start, producers, np.ones_like(is_forward), depth)


@njit(cache=True)
def _to_producers(
    order: Ints, start: Ints, producers: Ints, consumes: Bools, depth: Floats
) -> None:
    """Puts what has no depth where its first consumer is, of the ops that are asked."""
    known = np.isfinite(depth)
    for op in order[::-1]:
        if not consumes[op]:
            continue
        for position in range(start[op], start[op + 1]):
            if not known[producers[position]]:
                depth[producers[position]] = min(depth[producers[position]], depth[op])
