"""Orders of directed graphs: levels, topological order; close to linear in time."""

import numpy as np
from numpy.typing import NDArray

from placeto.support.arrays import Ints
from placeto.support.jit import njit


def compressed(num_rows: int, rows: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Compressed sparse rows of (row, value) pairs; the order within a row is kept.

    Args:
        num_rows: how many rows there are.
        rows: (n,) row of each pair.
        values: (n,) value of each pair.

    Returns:
        `start` (num_rows + 1,) and `items` (n,): row r is `items[start[r]:start[r + 1]]`.
    """
    start = np.zeros(num_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=num_rows), out=start[1:])
    return start, _scattered(start[:-1].copy(), np.array(rows), np.array(values))


def levels(num_nodes: int, sources: Ints, targets: Ints) -> Ints:
    """Length of the longest path that ends at each node.

    Args:
        num_nodes: how many nodes there are.
        sources: (num_edges,) tail of each edge.
        targets: (num_edges,) head of each edge.

    Returns:
        (num_nodes,) levels from 0; -1 for a node on a cycle or behind one.
    """
    start, items = compressed(num_nodes, sources, targets)
    waiting = np.bincount(targets, minlength=num_nodes).astype(np.int64)
    level: Ints = _levels(start, items, waiting)
    return level


def topological_order(num_nodes: int, sources: Ints, targets: Ints) -> Ints:
    """Nodes so that every edge points forward, the lowest free number first.

    Args:
        num_nodes: how many nodes there are.
        sources: (num_edges,) tail of each edge.
        targets: (num_edges,) head of each edge.

    Returns:
        (n,) nodes; n < num_nodes if there is a cycle.
    """
    if (sources < targets).all():
        return np.arange(num_nodes)
    start, items = compressed(num_nodes, sources, targets)
    waiting = np.bincount(targets, minlength=num_nodes).astype(np.int64)
    order: Ints = _kahn(start, items, waiting)
    return order


def directed(position: Ints, sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """Edges turned to point along an order of the nodes, each pair of nodes once.

    Args:
        position: (num_nodes,) where each node stands in the order.
        sources: (num_edges,) tail of each edge.
        targets: (num_edges,) head of each edge.

    Returns:
        Parents and children, two (n,) arrays, sorted by (parent, child).
    """
    along = position[sources] < position[targets]
    parents, children = np.where(along, sources, targets), np.where(along, targets, sources)
    key = np.unique(parents * len(position) + children)
    return key // len(position), key % len(position)


def ancestors(order: Ints, parents: Ints, children: Ints) -> NDArray[np.bool_]:
    """From which nodes a path leads to each node.

    Args:
        order: (num_nodes,) the nodes in topological order.
        parents: (num_edges,) tail of each edge.
        children: (num_edges,) head of each edge.

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


@njit(cache=True)
def _scattered(free: Ints, rows: Ints, values: Ints) -> Ints:  # pragma: no cover
    items = np.empty(len(rows), np.int64)
    for index in range(len(rows)):
        row = rows[index]
        items[free[row]] = values[index]
        free[row] += 1
    return items


@njit(cache=True)
def _levels(start: Ints, items: Ints, waiting: Ints) -> Ints:  # pragma: no cover
    num_nodes = len(waiting)
    level = np.zeros(num_nodes, np.int64)
    queue = np.empty(num_nodes, np.int64)
    tail = 0
    for node in range(num_nodes):
        if waiting[node] == 0:
            queue[tail] = node
            tail += 1
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        for position in range(start[node], start[node + 1]):
            target = items[position]
            level[target] = max(level[target], level[node] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                queue[tail] = target
                tail += 1
    for node in range(num_nodes):
        if waiting[node] > 0:
            level[node] = -1
    return level


@njit(cache=True)
def _kahn(start: Ints, items: Ints, waiting: Ints) -> Ints:  # pragma: no cover
    num_nodes = len(waiting)
    heap = np.empty(num_nodes, np.int64)
    size = 0
    for node in range(num_nodes):
        if waiting[node] == 0:
            heap[size] = node  # ascending, hence already a heap
            size += 1
    order = np.empty(num_nodes, np.int64)
    count = 0
    while size > 0:
        node = heap[0]
        size -= 1
        last = heap[size]
        hole = 0
        while 2 * hole + 1 < size:
            child = 2 * hole + 1
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= last:
                break
            heap[hole] = heap[child]
            hole = child
        heap[hole] = last
        order[count] = node
        count += 1
        for position in range(start[node], start[node + 1]):
            target = items[position]
            waiting[target] -= 1
            if waiting[target] == 0:
                hole = size
                size += 1
                while hole > 0 and heap[(hole - 1) // 2] > target:
                    heap[hole] = heap[(hole - 1) // 2]
                    hole = (hole - 1) // 2
                heap[hole] = target
    return order[:count]
