"""Fewer groups: few bytes cut, balanced in time."""

import heapq

import numpy as np

from placeto.graph import ComputationGraph
from placeto.grouping.colocation import op_share
from placeto.grouping.contraction import Groups, contract
from placeto.grouping.disjoint_sets import join_pairs, numbered, roots
from placeto.support.arrays import Floats, Ints
from placeto.support.beside import wait_for


def coarsen(graph: ComputationGraph, op_group: Ints, max_groups: int) -> Ints:
    """Merges groups until at most `max_groups` are left: few bytes cut, balanced in time.

    Greedy heavy-edge contraction as in multilevel graph partitioning (Karypis & Kumar 1998,
    "A fast and high quality multilevel scheme for partitioning irregular graphs"): of all
    neighbouring groups those merge first whose shared bytes are largest relative to the product
    of their times. No group grows beyond twice an even share of the time, unless too many groups
    are left then: the limit doubles until they fit. Groups without a neighbour join one another,
    the smallest first.

    Args:
        graph: the ops.
        op_group: (num_ops,) groups to start from.
        max_groups: how many may be left, at least 1.

    Returns:
        (num_ops,) groups, numbered by their first op.
    """
    wait_for("groups")
    groups = numbered(op_group)
    share_of_op = op_share(graph)
    limit = 2.0 / max_groups
    while (count := int(groups.max()) + 1) > max_groups:
        share = np.zeros(count)
        np.add.at(share, groups, share_of_op)
        low, high, size = _shared_bytes(graph, groups, count)
        parent = np.arange(count)
        # Groups without a neighbour come first: joining them cuts nothing.
        lone = np.setdiff1d(parent, np.concatenate([low, high]))
        surplus = count - max_groups
        joined = _lightest(lone, share, surplus, limit)
        join_pairs(parent, *joined)
        # Groups of no time at all have an affinity too.
        pool = Groups(parent, share, least=0.1 / max_groups)
        contract(pool, low, high, size, surplus - len(joined[0]), limit)
        groups = numbered(roots(parent)[groups])
        limit *= 2
    return groups


def _lightest(groups: Ints, share: Floats, surplus: int, limit: float) -> tuple[Ints, Ints]:
    """Pairs of groups to join, always the two lightest, as far as both are within the limit."""
    heap = list(zip(share[groups].tolist(), groups.tolist(), strict=True))
    heapq.heapify(heap)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < surplus and len(heap) > 1:
        (small, a), (large, b) = heapq.heappop(heap), heap[0]
        if small + large > limit:
            break
        heapq.heapreplace(heap, (small + large, b))
        pairs.append((a, b))
    lightest, next_lightest = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    return lightest, next_lightest


def _shared_bytes(graph: ComputationGraph, op_group: Ints, count: int) -> tuple[Ints, Ints, Floats]:
    """Neighbouring groups, each pair once, the lower first; and the bytes of the tensors between.

    A tensor counts once for every group that consumes it.
    """
    copies = np.unique(graph.edge_tensor * count + op_group[graph.edge_consumer])
    tensor, target = copies // count, copies % count
    source = op_group[graph.tensor_producer[tensor]]
    between = source != target
    low, high = np.minimum(source, target)[between], np.maximum(source, target)[between]
    pairs, inverse = np.unique(low * count + high, return_inverse=True)
    size = np.zeros(len(pairs))
    np.add.at(size, inverse, graph.tensor_bytes[tensor[between]])
    return pairs // count, pairs % count, size
