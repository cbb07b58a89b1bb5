"""Contraction of a graph: the neighbours of the highest affinity merge, again and again."""

import heapq
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.typed import Dict
from numpy.typing import NDArray

from placeto.grouping.disjoint_sets import root
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner, njit

# By how much a group's weight has to grow for its affinities to fall whatever the rounding.
FELT = 1 + 1e-9


class Groups(NamedTuple):
    """Groups that merge; a merged group has the lower number of the two."""

    parent: Ints  # (num_groups,) disjoint sets
    share: Floats  # (num_groups,) share of the step's time
    least: float  # share + least is a group's weight


class Pairs(NamedTuple):
    """Pairs of neighbouring groups, and the one valid entry of each in the heap."""

    ends: Ints  # (2 num_pairs,) pair p is of the groups that items 2 p and 2 p + 1 are in
    size: Floats  # (num_pairs,) bytes of the tensors between
    alive: NDArray[np.bool_]  # (num_pairs,) whether the pair may still merge
    score: Floats  # (num_pairs,) the entry's: affinity, negative so that the highest comes first
    rank: Ints  # (num_pairs,) the entry's: lower group * num_groups + higher, for equal scores


@njit(cache=True)
def contract(
    groups: Groups, low: Ints, high: Ints, size: Floats, surplus: int, limit: float
) -> None:  # pragma: no cover
    """Merges neighbours in place: always the pair with the most bytes a product of weights.

    An entry in the heap is never too late: a growing weight makes it too early, which shows when
    it is popped. When two groups merge, the one with fewer pairs gives its to the other, so that
    a pair changes hands at most log2(num_groups) times.

    Args:
        groups: all groups, each by itself.
        low: (num_pairs,) a group of each pair of neighbours, each pair once.
        high: (num_pairs,) the other group, of a higher number.
        size: (num_pairs,) bytes of the tensors between the two.
        surplus: how many merges are wanted at most.
        limit: the largest share of time of a merged group.
    """
    parent, share, least = groups
    num_groups, num_pairs = len(parent), len(low)
    pairs = Pairs(
        np.empty(2 * num_pairs, np.int64),
        size.copy(),
        np.ones(num_pairs, np.bool_),
        np.full(num_pairs, np.inf),
        np.zeros(num_pairs, np.int64),
    )
    # The half pairs of each group are a linked list. Lists have numbers of their own, so that the
    # longer of two can pass to the merged group as it is.
    following = np.empty(2 * num_pairs, np.int64)
    head = np.full(num_groups, -1)
    length = np.zeros(num_groups, np.int64)
    list_of = np.arange(num_groups)
    pair_of_lists = Dict.empty(types.int64, types.int64)
    heap = [(0.0, 0, 0)]
    heap.pop()
    for pair in range(num_pairs):
        for half, group in ((2 * pair, low[pair]), (2 * pair + 1, high[pair])):
            pairs.ends[half] = group
            following[half] = head[group]
            head[group] = half
            length[group] += 1
        pair_of_lists[low[pair] * num_groups + high[pair]] = pair
        _enter(heap, pair, pairs, groups)

    while surplus > 0 and len(heap) > 0:
        score, rank, pair = heapq.heappop(heap)
        if not pairs.alive[pair] or score != pairs.score[pair] or rank != pairs.rank[pair]:
            continue
        pairs.score[pair] = np.inf
        a, b = root(parent, pairs.ends[2 * pair]), root(parent, pairs.ends[2 * pair + 1])
        a, b = min(a, b), max(a, b)
        if share[a] + share[b] > limit:
            pairs.alive[pair] = False
            continue
        if (score, rank) != _turn(pair, pairs, groups):
            _enter(heap, pair, pairs, groups)
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
                if pairs.alive[half // 2]:
                    following[half] = head[long]
                    head[long] = half
                    length[long] += 1
                    _enter(heap, half // 2, pairs, groups)
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
                _enter(heap, pair, pairs, groups)
            half = rest
        if len(heap) > 4 * num_pairs:  # mostly entries that later ones replaced
            heap.clear()
            for pair in range(num_pairs):
                if pairs.alive[pair] and pairs.score[pair] < np.inf:
                    heapq.heappush(heap, (pairs.score[pair], pairs.rank[pair], pair))


@inner(cache=True)
def _turn(pair: int, pairs: Pairs, groups: Groups) -> tuple[float, int]:  # pragma: no cover
    """A pair's score and rank as they are."""
    parent, share, least = groups
    a, b = root(parent, pairs.ends[2 * pair]), root(parent, pairs.ends[2 * pair + 1])
    affinity = (pairs.size[pair] + 1.0) / ((share[a] + least) * (share[b] + least))
    return -affinity, min(a, b) * len(parent) + max(a, b)


@inner(cache=True)
def _enter(heap: Any, pair: int, pairs: Pairs, groups: Groups) -> None:  # pragma: no cover
    """Gives a pair an entry in the heap, unless it has one that is not too late."""
    turn = _turn(pair, pairs, groups)
    if turn < (pairs.score[pair], pairs.rank[pair]):
        pairs.score[pair], pairs.rank[pair] = turn
        heapq.heappush(heap, (turn[0], turn[1], pair))
