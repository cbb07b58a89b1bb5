"""Ops to groups: co-location rules, then coarsening.

The rules are those of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972, section 3.3): ops that
must share a device, a gradient with its forward op, and a producer with its sole consumer.
"""

import heapq
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from placeto.errors import PlacetoError
from placeto.graph import ComputationGraph, Floats, Ints

Grouping = Literal["none", "colocation", "auto"] | int | ArrayLike

AUTO_MAX_GROUPS = 128
SOLE_CONSUMER_SHARE = 0.01
LIGHT_SHARE = 1e-4
GRADIENT_SCOPES = ("gradient_tape/", "gradients/")


def group_ops(graph: ComputationGraph, grouping: Grouping) -> Ints:
    """Gives every op its group.

    Args:
        graph: the ops.
        grouping: `"none"` (only ops that must share a device do), `"colocation"` (the rules of
            ColocRL), `"auto"` (these, then coarsened to at most 128 groups), a number N (the same
            with at most N groups), or a (num_ops,) array of groups.

    Returns:
        (num_ops,) groups from 0 without gaps, numbered by their first op; an array keeps its own
        numbers.

    Raises:
        PlacetoError: an unknown grouping, an array of the wrong shape or with gaps, or one that
            parts ops that must share a device.
    """
    if isinstance(grouping, str):
        if grouping == "none":
            return _numbered(_Merger(graph.num_ops).join_equal(graph.colocation).roots())
        if grouping == "colocation":
            return colocation_groups(graph)
        if grouping == "auto":
            return coarsen(graph, colocation_groups(graph), AUTO_MAX_GROUPS)
        raise PlacetoError(
            f"grouping is {grouping!r}, expected none, colocation, auto, or a number of groups"
        )
    try:
        array = np.asarray(grouping)
    except ValueError as error:
        raise PlacetoError("grouping is not an array of groups, one an op") from error
    if array.ndim == 0:
        if not np.issubdtype(array.dtype, np.integer) or array < 1:
            raise PlacetoError(f"grouping is {grouping!r}, expected at least 1 group")
        return coarsen(graph, colocation_groups(graph), int(array))
    return _checked(graph, array)


def colocation_groups(graph: ComputationGraph) -> Ints:
    """Groups by the co-location rules of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972).

    Joined are: ops with the same `colocation` key; an op of a gradient scope
    (`gradient_tape/dense/MatMul/…`) with the forward op that the scope names, or else with the
    first op of the scope; and an op with the only op that consumes anything of it. The last rule
    would join a whole network through its chain of sole consumers; it therefore joins two groups
    only if together they take at most 1% of the step, or one takes next to nothing (0.01%).

    Args:
        graph: the ops.

    Returns:
        (num_ops,) groups, numbered by their first op.
    """
    merger = _Merger(graph.num_ops).join_equal(graph.colocation)
    for op, forward in _gradients(graph):
        merger.join(op, forward)
    sources, targets = graph.op_edges
    pairs = np.unique(sources * graph.num_ops + targets)
    sources, targets = pairs // graph.num_ops, pairs % graph.num_ops
    sole = np.bincount(sources, minlength=graph.num_ops)[sources] == 1
    roots = merger.roots()
    share = np.bincount(roots, weights=_op_share(graph), minlength=graph.num_ops).tolist()
    for source, target in zip(sources[sole].tolist(), targets[sole].tolist(), strict=True):
        a, b = merger.root(source), merger.root(target)
        light = min(share[a], share[b]) <= LIGHT_SHARE
        if a != b and (light or share[a] + share[b] <= SOLE_CONSUMER_SHARE):
            merger.join(a, b)
            share[min(a, b)] += share[max(a, b)]
    return _numbered(merger.roots())


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
    groups = _numbered(op_group)
    limit = 2.0 / max_groups
    while (count := int(groups.max()) + 1) > max_groups:
        groups = _numbered(_contract(graph, groups, count, max_groups, limit).roots()[groups])
        limit *= 2
    return groups


def _contract(
    graph: ComputationGraph, op_group: Ints, count: int, max_groups: int, limit: float
) -> "_Merger":
    """Merges groups, the closest first, while the merged share of time is within `limit`."""
    share = np.bincount(op_group, weights=_op_share(graph), minlength=count).tolist()
    least = 0.1 / max_groups  # so that groups of no time at all have an affinity too
    between = _shared_bytes(graph, op_group, count)
    alive = [True] * count
    merger = _Merger(count)
    left = count
    # Groups without a neighbour come first: joining them cuts nothing.
    lone = [(share[group], group) for group in range(count) if not between[group]]
    heapq.heapify(lone)
    while left > max_groups and len(lone) > 1:
        (small, a), (large, b) = heapq.heappop(lone), lone[0]
        if small + large > limit:
            break
        merger.join(a, b)
        alive[a] = False
        heapq.heapreplace(lone, (small + large, b))
        left -= 1
    heap = [
        (-_affinity(size, share[a] + least, share[b] + least), a, b)
        for a in range(count)
        for b, size in between[a].items()
        if a < b
    ]
    heapq.heapify(heap)
    while left > max_groups and heap:
        score, a, b = heapq.heappop(heap)
        if not (alive[a] and alive[b]) or share[a] + share[b] > limit:
            continue
        current = -_affinity(between[a][b], share[a] + least, share[b] + least)
        if current > score:
            heapq.heappush(heap, (current, a, b))
            continue
        merger.join(a, b)
        alive[b] = False
        left -= 1
        share[a] += share[b]
        del between[a][b]
        for other, size in between[b].items():
            if other == a:
                continue
            del between[other][b]
            between[a][other] = between[other][a] = between[a].get(other, 0) + size
        for other, size in between[a].items():
            pair = (min(a, other), max(a, other))
            affinity = _affinity(size, share[a] + least, share[other] + least)
            heapq.heappush(heap, (-affinity, *pair))
    return merger


def _affinity(size: float, weight: float, other: float) -> float:
    return (size + 1.0) / (weight * other)


def _op_share(graph: ComputationGraph) -> Floats:
    """(num_ops,) share of the step's time of each op, the mean over device kinds."""
    share = np.zeros(graph.num_ops)
    for seconds in graph.op_seconds.values():
        finite = np.where(np.isfinite(seconds), seconds, 0)
        share += finite / max(finite.sum(), np.finfo(float).tiny)
    return share / max(len(graph.op_seconds), 1)


def _shared_bytes(graph: ComputationGraph, op_group: Ints, count: int) -> list[dict[int, int]]:
    """For each group, its neighbours and the bytes of the tensors between them, either way."""
    target = op_group[graph.edge_consumer]
    copies = np.unique(graph.edge_tensor * count + target)
    tensor, target = copies // count, copies % count
    source = op_group[graph.tensor_producer[tensor]]
    between: list[dict[int, int]] = [{} for _ in range(count)]
    sizes = graph.tensor_bytes[tensor]
    for a, b, size in zip(source.tolist(), target.tolist(), sizes.tolist(), strict=True):
        if a != b:
            between[a][b] = between[b][a] = between[a].get(b, 0) + size
    return between


def _gradients(graph: ComputationGraph) -> Iterator[tuple[int, int]]:
    """Pairs of an op in a gradient scope and the op it belongs to, read off their names."""
    places: dict[str, int] = {}
    gradients = []
    for op, name in enumerate(graph.op_names):
        scope = next((scope for scope in GRADIENT_SCOPES if scope in name), None)
        if scope is not None:
            gradients.append((op, name[name.index(scope) + len(scope) :].split("/")))
            continue
        path = name.split("/")
        for length in range(1, len(path)):
            places.setdefault("/".join(path[:length]), op)
        places[name] = op
    for op, path in gradients:
        # At least two parts: a single one is the scope of the whole model.
        for length in range(len(path), 1, -1):
            forward = places.get("/".join(path[:length]))
            if forward is not None:
                yield op, forward
                break


def _checked(graph: ComputationGraph, op_group: Ints) -> Ints:
    if op_group.shape != (graph.num_ops,) or not np.issubdtype(op_group.dtype, np.integer):
        raise PlacetoError(
            f"grouping has shape {op_group.shape} of {op_group.dtype}, "
            f"expected ({graph.num_ops},) whole numbers: one group an op"
        )
    if op_group.min() < 0:
        op = int(np.argmin(op_group))
        raise PlacetoError(f"grouping[{op}] is {op_group[op]}, groups are numbered from 0")
    if op_group.max() >= graph.num_ops:
        op = int(np.argmax(op_group))
        raise PlacetoError(
            f"grouping[{op}] is {op_group[op]}, but {graph.num_ops} ops make at most as many groups"
        )
    missing = np.setdiff1d(np.arange(op_group.max() + 1), op_group)
    if len(missing):
        raise PlacetoError(
            f"grouping has no op in group {missing[0]}, though groups go up to {op_group.max()}"
        )
    op_group = op_group.astype(np.int64)
    keyed = np.flatnonzero(graph.colocation >= 0)
    first: dict[int, int] = {}
    for op in keyed.tolist():
        other = first.setdefault(int(graph.colocation[op]), op)
        if op_group[other] != op_group[op]:
            raise PlacetoError(
                f"grouping parts {graph.op_names[other]!r} (group {op_group[other]}) from "
                f"{graph.op_names[op]!r} (group {op_group[op]}), which colocation key "
                f"{graph.colocation[op]} keeps on one device"
            )
    op_group.flags.writeable = False
    return op_group


def _numbered(labels: Ints) -> Ints:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbered: Ints = rank[inverse]
    numbered.flags.writeable = False
    return numbered


class _Merger:
    """Disjoint sets (union-find with path halving); the lowest member is the root."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def root(self, item: int) -> int:
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, item: int, other: int) -> None:
        low, high = sorted((self.root(item), self.root(other)))
        self._parent[high] = low

    def join_equal(self, keys: Ints) -> "_Merger":
        """Joins the items that share a key from 0 up."""
        first: dict[int, int] = {}
        for item, key in enumerate(keys.tolist()):
            if key >= 0:
                self.join(item, first.setdefault(key, item))
        return self

    def roots(self) -> Ints:
        return np.array([self.root(item) for item in range(len(self._parent))], dtype=np.int64)
