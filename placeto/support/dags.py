"""Orders of directed graphs, whose edges go from `sources` to `targets`, both (num_edges,)."""

import numpy as np
from numpy.typing import NDArray

from placeto.support.arrays import Floats, Int32s, Ints
from placeto.support.heaps import pop, push
from placeto.support.jit import njit


def compressed(num_rows: int, rows: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Compressed sparse rows of (row, value) pairs, (n,) each; the order within a row is kept.

    Returns:
        `start` (num_rows + 1,) and `items` (n,): row r is `items[start[r]:start[r + 1]]`.
    """
    start = np.zeros(num_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=num_rows), out=start[1:])
    return start, _scattered(start[:-1].copy(), np.array(rows), np.array(values))


def joined(count: int, source: Ints, target: Ints) -> Ints:
    """(count,) numbers of sets, of nodes that (n,) pairs of them join."""
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    pairs = coo_array((np.ones(len(source)), (source, target)), (count, count))
    found: Ints = connected_components(pairs, directed=False)[1]
    return found


def levels(num_nodes: int, sources: Ints, targets: Ints) -> Ints:
    """(num_nodes,) length of the longest path to each node; -1 on a cycle or behind one."""
    return _sorted(num_nodes, sources, targets)[1]


def topological_order(num_nodes: int, sources: Ints, targets: Ints) -> Ints:
    """Nodes so that every edge points forward, the lowest free number first.

    Returns:
        (n,) nodes; n < num_nodes if there is a cycle.
    """
    if (sources < targets).all():
        return np.arange(num_nodes)
    return _sorted(num_nodes, sources, targets)[0]


def directed(position: Ints, sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """Edges turned to point along an order of the nodes, each pair of nodes once.

    In it each node has a (num_nodes,) `position`.

    Returns:
        Parents and children, two (n,) arrays, sorted by (parent, child).
    """
    along = position[sources] < position[targets]
    parents, children = np.where(along, sources, targets), np.where(along, targets, sources)
    key = np.unique(parents * len(position) + children)
    return key // len(position), key % len(position)


def ancestors(order: Ints, parents: Ints, children: Ints) -> NDArray[np.bool_]:
    """From which nodes a path leads to each node, of a graph and its topological order.

    Returns:
        (num_nodes, num_nodes) whether the column is an ancestor of the row.
    """
    start, items = compressed(len(order), children, parents)
    found = np.zeros((len(order), len(order)), dtype=bool)
    for node in order.tolist():
        above = items[start[node] : start[node + 1]]
        found[node] = found[above].any(axis=0)
        found[node, above] = True
    return found


def _sorted(num_nodes: int, sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """The topological order and the levels."""
    waiting = np.bincount(targets, minlength=num_nodes).astype(np.int64)
    order, level = np.zeros((2, num_nodes), dtype=np.int64)
    heap = np.empty(num_nodes), np.empty(num_nodes, dtype=np.int32)
    count = _kahn(*compressed(num_nodes, sources, targets), waiting, *heap, order, level)
    level[waiting > 0] = -1
    return order[:count], level


@njit(cache=True)
def _scattered(free: Ints, rows: Ints, values: Ints) -> Ints:
    items = np.empty(len(rows), np.int64)
    for index in range(len(rows)):
        row = rows[index]
        items[free[row]] = values[index]
        free[row] += 1
    return items


@njit(cache=True)
def _kahn(
    start: Ints, items: Ints, waiting: Ints, numbers: Floats, free: Int32s, order: Ints, level: Ints
) -> int:
    """Fills in the order, and the levels of what is in it (Kahn 1962); returns how many are.

    `numbers` and `free` are a heap of nodes, whose times are their numbers.
    """
    count = size = 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            size = push(numbers, free, size, float(node), node)
    while size > 0:
        node = free[0]
        size = pop(numbers, free, size)
        order[count] = node
        count += 1
        for position in range(start[node], start[node + 1]):
            target = items[position]
            level[target] = max(level[target], level[node] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                size = push(numbers, free, size, float(target), target)
    return count


@njit(cache=True)
def longest_paths(
    order: Ints, seconds: Floats, start: Ints, producers: Ints
) -> tuple[Floats, Floats]:
    """Of each op, the seconds of the longest path up to its start, and from its start on.

    `producers` are those of each op's inputs, in compressed rows; all but these are (num_ops,).
    """
    before, after = np.zeros_like(seconds), seconds.copy()
    for op in order:
        for position in range(start[op], start[op + 1]):
            producer = producers[position]
            before[op] = max(before[op], before[producer] + seconds[producer])
    for op in order[::-1]:
        for position in range(start[op], start[op + 1]):
            producer = producers[position]
            after[producer] = max(after[producer], seconds[producer] + after[op])
    return before, after
