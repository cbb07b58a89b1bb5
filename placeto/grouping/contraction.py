"""Fewer groups: the neighbours of the highest affinity merge, again and again."""

import heapq
from typing import NamedTuple

import numpy as np
from numba import types
from numba.typed import Dict

from placeto.graph import ComputationGraph
from placeto.grouping.colocation import op_share
from placeto.grouping.disjoint_sets import join_pairs, numbered, root, roots
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.beside import wait_for
from placeto.support.jit import inner, njit

# By how much a group's weight has to grow for its affinities to fall whatever the rounding.
FELT = 1 + 1e-9


class Groups(NamedTuple):
    """Groups that merge; a merged group has the lower number of the two."""

    parent: Ints  # (num_groups,) disjoint sets
    share: Floats  # (num_groups,) share of the step's time
    least: float  # share + least is a group's weight


class Pairs(NamedTuple):
    """Pairs of neighbouring groups, and a heap of those that may merge."""

    ends: Ints  # (2 num_pairs,) pair p is of the groups that items 2 p and 2 p + 1 are in
    size: Floats  # (num_pairs,) bytes of the tensors between
    alive: Bools  # (num_pairs,) whether the pair may still merge
    score: Floats  # (num_pairs,) affinity, negative so that the highest comes first; inf outside
    rank: Ints  # (num_pairs,) lower group * num_groups + higher, for equal scores
    heap: Ints  # (num_pairs,) the pairs in the heap, the first `waiting` of these
    place: Ints  # (num_pairs,) where each is there, or -1
    waiting: Ints  # (1,) how many there are


class Neighbours(NamedTuple):
    """Linked lists of the half pairs of each group.

    Lists have numbers of their own, so that the longer of two can pass to the merged group as it
    is.
    """

    following: Ints  # (2 num_pairs,)
    head: Ints  # (num_groups,)
    length: Ints  # (num_groups,)
    list_of: Ints  # (num_groups,)


def coarsen(graph: ComputationGraph, op_group: Ints, max_groups: int) -> Ints:
    """Merges groups until at most `max_groups` are left: few bytes cut, balanced in time.

    Greedy heavy-edge contraction as in multilevel graph partitioning (Karypis & Kumar 1998,
    "A fast and high quality multilevel scheme for partitioning irregular graphs"): of all
    neighbouring groups those merge first whose shared bytes are largest relative to the product
    of their times. No group grows beyond twice an even share of the time, unless too many groups
    are left then: the limit doubles until they fit. Groups without a neighbour join one another,
    the smallest first.

    From (num_ops,) groups to others, numbered by their first op.
    """
    wait_for("groups")
    groups, share_of_op = numbered(op_group), op_share(graph)
    limit = 2.0 / max_groups
    while (count := int(groups.max()) + 1) > max_groups:
        share = np.zeros(count)
        np.add.at(share, groups, share_of_op)
        low, high, size = shared_bytes(graph, groups, count, either_way=True)
        parent = np.arange(count)
        # Groups without a neighbour come first: joining them cuts nothing.
        lone = np.setdiff1d(parent, np.concatenate([low, high]))
        surplus = count - max_groups
        joined = _lightest(lone, share, surplus, limit)
        join_pairs(parent, *joined)
        # Groups of no time at all have an affinity too.
        pool = Groups(parent, share, least=0.1 / max_groups)
        contract(pool, low, high, size.astype(float), surplus - len(joined[0]), limit)
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


def shared_bytes(
    graph: ComputationGraph, op_group: Ints, count: int, *, either_way: bool = False
) -> tuple[Ints, Ints, Ints]:
    """Pairs of groups with bytes between them; a tensor counts once for every group that reads it.

    Returns three (num_pairs,) arrays, source, target and bytes, sorted by (source, target). With
    `either_way` both directions are one pair, of the lower group and the higher.
    """
    copies = np.unique(graph.edge_tensor * count + op_group[graph.edge_consumer])
    tensor, target = copies // count, copies % count
    source = op_group[graph.tensor_producer[tensor]]
    if either_way:
        source, target = np.minimum(source, target), np.maximum(source, target)
    between = source != target
    pairs, index = np.unique((source * count + target)[between], return_inverse=True)
    size = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(size, index, graph.tensor_bytes[tensor[between]])
    return pairs // count, pairs % count, size


def contract(
    groups: Groups, low: Ints, high: Ints, size: Floats, surplus: int, limit: float
) -> None:
    """Merges neighbours in place: always the pair with the most bytes a product of weights.

    A pair in the heap is never too late: a growing weight makes it too early, which shows when it
    comes first. When two groups merge, the one with fewer pairs gives its to the other, so that a
    pair changes hands at most log2(num_groups) times.

    Each pair of neighbours is given once, (num_pairs,) lower and higher numbers, with the bytes
    between. At most `surplus` merges are made, and no merged group takes more than `limit`, a share
    of the time.
    """
    count, several = len(low), len(groups.parent)
    pairs = Pairs(
        ends=np.stack([low, high], axis=1).ravel(),
        size=size.copy(),
        alive=np.ones(count, dtype=bool),
        score=np.full(count, np.inf),
        rank=np.zeros(count, dtype=np.int64),
        heap=np.zeros(count, dtype=np.int64),
        place=np.full(count, -1),
        waiting=np.zeros(1, dtype=np.int64),
    )
    head, length = np.full(several, -1), np.zeros(several, dtype=np.int64)
    lists = Neighbours(np.zeros(2 * count, dtype=np.int64), head, length, np.arange(several))
    _contract(groups, pairs, lists, surplus, limit)


@njit(cache=True)
def _contract(groups: Groups, pairs: Pairs, lists: Neighbours, surplus: int, limit: float) -> None:
    parent, share, least = groups
    following, head, length, list_of = lists
    num_groups = len(parent)
    pair_of_lists = Dict.empty(types.int64, types.int64)
    for half in range(len(pairs.ends)):
        group = pairs.ends[half]
        following[half] = head[group]
        head[group] = half
        length[group] += 1
    for pair in range(len(pairs.size)):
        pair_of_lists[pairs.ends[2 * pair] * num_groups + pairs.ends[2 * pair + 1]] = pair
        _enter(pair, pairs, groups)

    while surplus > 0 and pairs.waiting[0] > 0:
        pair = pairs.heap[0]
        turn = pairs.score[pair], pairs.rank[pair]
        _leave(pairs)
        if not pairs.alive[pair]:
            continue
        a, b = root(parent, pairs.ends[2 * pair]), root(parent, pairs.ends[2 * pair + 1])
        a, b = min(a, b), max(a, b)
        if share[a] + share[b] > limit:
            pairs.alive[pair] = False
            continue
        if turn != _turn(pair, pairs, groups):
            _enter(pair, pairs, groups)
            continue

        pairs.alive[pair] = False
        surplus -= 1
        before = share[b] + least
        parent[b] = a
        share[a] += share[b]
        short, long = list_of[a], list_of[b]
        if length[short] > length[long]:
            short, long = long, short
        # A lower number at the same weight makes the entries of b's pairs too late.
        if long == list_of[b] and share[a] + least <= before * FELT:
            half = head[long]
            head[long], length[long] = -1, 0
            while half >= 0:
                rest = following[half]
                if pairs.alive[half // 2]:  # the others are of no use in the list
                    following[half] = head[long]
                    head[long] = half
                    length[long] += 1
                    _enter(half // 2, pairs, groups)
                half = rest
        list_of[a] = long
        half = head[short]
        while half >= 0:
            rest, pair = following[half], half // 2
            if pairs.alive[pair]:
                other = list_of[root(parent, pairs.ends[half ^ 1])]
                key = min(long, other) * num_groups + max(long, other)
                known = pair_of_lists.setdefault(key, pair)
                if known != pair and pairs.alive[known]:
                    pairs.alive[pair] = False
                    pairs.size[known] += pairs.size[pair]
                    pair = known
                else:
                    pair_of_lists[key] = pair
                    following[half] = head[long]
                    head[long] = half
                    length[long] += 1
                _enter(pair, pairs, groups)
            half = rest


@inner(cache=True)
def _turn(pair: int, pairs: Pairs, groups: Groups) -> tuple[float, int]:
    """A pair's score and rank as they are."""
    parent, share, least = groups
    a, b = root(parent, pairs.ends[2 * pair]), root(parent, pairs.ends[2 * pair + 1])
    affinity = (pairs.size[pair] + 1.0) / ((share[a] + least) * (share[b] + least))
    return -affinity, min(a, b) * len(parent) + max(a, b)


@inner(cache=True)
def _enter(pair: int, pairs: Pairs, groups: Groups) -> None:
    """Puts a pair into the heap, unless it is there and not too late."""
    turn = _turn(pair, pairs, groups)
    if turn < (pairs.score[pair], pairs.rank[pair]):
        pairs.score[pair], pairs.rank[pair] = turn
        place = pairs.place[pair]
        if place < 0:
            place = pairs.waiting[0]
            pairs.waiting[0] += 1
        while place > 0 and _precedes(pairs, pair, pairs.heap[(place - 1) // 2]):
            _put(pairs, pairs.heap[(place - 1) // 2], place)
            place = (place - 1) // 2
        _put(pairs, pair, place)


@inner(cache=True)
def _leave(pairs: Pairs) -> None:
    """Takes the first pair out of the heap."""
    pairs.place[pairs.heap[0]], pairs.score[pairs.heap[0]] = -1, np.inf
    pairs.waiting[0] -= 1
    count = pairs.waiting[0]
    if count == 0:
        return
    last, place = pairs.heap[count], 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and _precedes(pairs, pairs.heap[child + 1], pairs.heap[child]):
            child += 1
        if not _precedes(pairs, pairs.heap[child], last):
            break
        _put(pairs, pairs.heap[child], place)
        place = child
    _put(pairs, last, place)


@inner(cache=True)
def _put(pairs: Pairs, pair: int, place: int) -> None:
    pairs.heap[place], pairs.place[pair] = pair, place


@inner(cache=True)
def _precedes(pairs: Pairs, pair: int, other: int) -> bool:
    if pairs.score[pair] != pairs.score[other]:
        return pairs.score[pair] < pairs.score[other]
    if pairs.rank[pair] != pairs.rank[other]:
        return pairs.rank[pair] < pairs.rank[other]
    return pair < other
