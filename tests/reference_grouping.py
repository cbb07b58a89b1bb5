"""Grouping once more, as slowly and plainly as its description: nothing is shared with placeto."""

from collections import defaultdict

import numpy as np

from placeto import ComputationGraph


class Sets:
    """A label for each item; joining gives all of one label the other, lower one."""

    def __init__(self, size: int) -> None:
        self.labels = list(range(size))

    def join(self, item: int, other: int) -> None:
        low, high = sorted((self.labels[item], self.labels[other]))
        self.labels = [low if label == high else label for label in self.labels]

    def numbered(self) -> list[int]:
        order = list(dict.fromkeys(self.labels))
        return [order.index(label) for label in self.labels]


def op_shares(graph: ComputationGraph) -> list[float]:
    columns = [np.where(np.isfinite(c), c, 0) for c in graph.op_seconds.values()]
    return list(sum(column / max(column.sum(), 1e-300) for column in columns) / len(columns))


def forward_op(graph: ComputationGraph, op: int) -> int | None:
    """The op that a gradient belongs to: of the longest scope that names an op, or holds one."""
    names = {name: i for i, name in enumerate(graph.op_names) if "gradient_tape/" not in name}
    if op in names.values():
        return None
    parts = graph.op_names[op].split("gradient_tape/")[1].split("/")
    for length in range(len(parts), 1, -1):
        scope = "/".join(parts[:length])
        if scope in names:
            return names[scope]
        inside = [i for name, i in names.items() if name.startswith(scope + "/")]
        if inside:
            return min(inside)
    return None


def colocation(graph: ComputationGraph) -> list[int]:
    """Groups by the co-location rules of ColocRL."""
    sets, keys = Sets(graph.num_ops), graph.colocation.tolist()
    for op, key in enumerate(keys):
        if key >= 0:
            sets.join(op, keys.index(key))
        forward = forward_op(graph, op)
        if forward is not None:
            sets.join(op, forward)
    shares = op_shares(graph)
    consumers = defaultdict(set)
    for producer, consumer in zip(*(ends.tolist() for ends in graph.op_edges), strict=True):
        consumers[producer].add(consumer)
    for producer in sorted(consumers):
        if len(consumers[producer]) == 1:
            consumer = next(iter(consumers[producer]))
            a, b = sets.labels[producer], sets.labels[consumer]
            first, second = (
                sum(share for share, label in zip(shares, sets.labels, strict=True) if label == end)
                for end in (a, b)
            )
            if a != b and (min(first, second) <= 1e-4 or first + second <= 0.01):
                sets.join(producer, consumer)
    return sets.numbered()


def contracted(
    sizes: dict[tuple[int, int], int],
    shares: list[float],
    surplus: int,
    limit: float,
    least: float,
) -> list[int]:
    """The lowest member of the merged group of each: every time, all pairs are looked at."""
    sizes, shares, sets = dict(sizes), list(shares), Sets(len(shares))
    for _ in range(surplus):
        turns = [
            (-(size + 1) / ((shares[a] + least) * (shares[b] + least)), a, b)
            for (a, b), size in sizes.items()
            if shares[a] + shares[b] <= limit
        ]
        if not turns:
            break
        _, a, b = min(turns)
        sets.join(a, b)
        shares[a] += shares[b]
        merged: dict[tuple[int, int], int] = defaultdict(int)
        for pair, size in sizes.items():
            low, high = sorted(a if end == b else end for end in pair)
            if low != high:
                merged[low, high] += size
        sizes = merged
    return sets.labels
