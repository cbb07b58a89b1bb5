"""Ops to groups: co-location rules, then coarsening.

The rules are those of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972, section 3.3): ops that
must share a device, a gradient with its forward op, and a producer with its sole consumer.
"""

import heapq
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from placeto.errors import PlacetoError
from placeto.graph import ComputationGraph, Ints

Grouping = Literal["none", "colocation", "auto"] | int | ArrayLike

AUTO_MAX_GROUPS = 128
GRADIENT_SCOPES = ("gradient_tape/", "gradients/")


def group_ops(graph: ComputationGraph, grouping: Grouping) -> Ints:
    """Gives every op its group.

    Args:
        graph: the ops.
        grouping: `"none"` (only ops that must share a device do), `"colocation"` (the rules of
            ColocRL), `"auto"` (these, then coarsened to at most 128 groups), a number N (the same
            with at most N groups), or a (num_ops,) array of groups.

    Returns:
        (num_ops,) groups from 0 without gaps, numbered by their first op.

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
    array = np.asarray(grouping)
    if array.ndim == 0:
        if not np.issubdtype(array.dtype, np.integer) or array < 1:
            raise PlacetoError(f"grouping is {grouping!r}, expected at least 1 group")
        return coarsen(graph, colocation_groups(graph), int(array))
    return _checked(graph, array)


def colocation_groups(graph: ComputationGraph) -> Ints:
    """Groups by the co-location rules of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972).

    Joined are: ops with the same `colocation` key; an op of a gradient scope
    (`gradient_tape/dense/MatMul/…`) with the forward op that the scope names; and an op with the
    only op that consumes anything of it.

    Args:
        graph: the ops.

    Returns:
        (num_ops,) groups, numbered by their first op.
    """
    merger = _Merger(graph.num_ops).join_equal(graph.colocation)
    numbers = {name: op for op, name in enumerate(graph.op_names)}
    for op, name in enumerate(graph.op_names):
        forward = _forward_op(name, numbers)
        if forward is not None:
            merger.join(op, forward)
    sources, targets = graph.op_edges
    pairs = np.unique(sources * graph.num_ops + targets)
    sources, targets = pairs // graph.num_ops, pairs % graph.num_ops
    sole = np.bincount(sources, minlength=graph.num_ops)[sources] == 1
    for source, target in zip(sources[sole].tolist(), targets[sole].tolist(), strict=True):
        merger.join(source, target)
    return _numbered(merger.roots())


def coarsen(graph: ComputationGraph, op_group: Ints, max_groups: int) -> Ints:
    """Merges groups until at most `max_groups` are left: few bytes cut, balanced in time.

    Greedy heavy-edge contraction as in multilevel graph partitioning (Karypis & Kumar 1998,
    "A fast and high quality multilevel scheme for partitioning irregular graphs"): of all
    neighbouring groups those merge first whose shared bytes are largest relative to the product
    of their times, so that small groups join their heaviest neighbour before large ones meet.
    Groups that nothing joins (separate components) merge smallest first.

    Args:
        graph: the ops.
        op_group: (num_ops,) groups to start from.
        max_groups: how many may be left, at least 1.

    Returns:
        (num_ops,) groups, numbered by their first op.
    """
    count = int(op_group.max()) + 1
    if count <= max_groups:
        return _numbered(op_group)
    weight = _group_weight(graph, op_group, count, max_groups)
    between = _shared_bytes(graph, op_group, count)
    alive = np.ones(count, dtype=bool)
    merger = _Merger(count)
    # Merging into the smaller adjacency map would be as right; into the lower number is repeatable.
    heap = [
        (-_affinity(size, weight[a], weight[b]), a, b)
        for a in range(count)
        for b, size in between[a].items()
        if a < b
    ]
    heapq.heapify(heap)
    while count > max_groups and heap:
        score, a, b = heapq.heappop(heap)
        if not (alive[a] and alive[b]):
            continue
        current = -_affinity(between[a][b], weight[a], weight[b])
        if current > score:
            heapq.heappush(heap, (current, a, b))
            continue
        merger.join(a, b)
        alive[b] = False
        count -= 1
        weight[a] += weight[b]
        del between[a][b]
        for other, size in between[b].items():
            if other == a:
                continue
            del between[other][b]
            between[a][other] = between[other][a] = between[a].get(other, 0) + size
        for other, size in between[a].items():
            pair = (min(a, other), max(a, other))
            heapq.heappush(heap, (-_affinity(size, weight[a], weight[other]), *pair))
    rest = sorted(np.flatnonzero(alive).tolist(), key=lambda group: (weight[group], group))
    while count > max_groups:
        a, b = rest[0], rest[1]
        merger.join(a, b)
        weight[b] += weight[a]
        rest = sorted(rest[1:], key=lambda group: (weight[group], group))
        count -= 1
    return _numbered(merger.roots()[op_group])


def _affinity(size: float, weight: float, other: float) -> float:
    return (size + 1.0) / (weight * other)


def _group_weight(
    graph: ComputationGraph, op_group: Ints, count: int, max_groups: int
) -> list[float]:
    """Share of the step's time of each group, never below a tenth of an even share.

    The mean over device kinds of each op's share of that kind's total counts, so that no kind's
    scale outweighs another's.
    """
    share = np.zeros(graph.num_ops)
    for seconds in graph.op_seconds.values():
        finite = np.where(np.isfinite(seconds), seconds, 0)
        share += finite / max(finite.sum(), np.finfo(float).tiny)
    share /= max(len(graph.op_seconds), 1)
    weight = np.bincount(op_group, weights=share, minlength=count)
    return (weight + 0.1 / max_groups).tolist()


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


def _forward_op(name: str, numbers: dict[str, int]) -> int | None:
    for scope in GRADIENT_SCOPES:
        position = name.find(scope)
        if position < 0:
            continue
        path = (name[:position] + name[position + len(scope) :]).split("/")
        for length in range(len(path), 0, -1):
            op = numbers.get("/".join(path[:length]))
            if op is not None:
                return op
    return None


def _checked(graph: ComputationGraph, op_group: Ints) -> Ints:
    if op_group.shape != (graph.num_ops,) or not np.issubdtype(op_group.dtype, np.integer):
        raise PlacetoError(
            f"grouping has shape {op_group.shape} of {op_group.dtype}, "
            f"expected ({graph.num_ops},) whole numbers: one group an op"
        )
    if op_group.min() < 0:
        op = int(np.argmin(op_group))
        raise PlacetoError(f"grouping[{op}] is {op_group[op]}, groups are numbered from 0")
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
