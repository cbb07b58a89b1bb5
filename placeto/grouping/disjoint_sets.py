"""Disjoint sets of items 0, 1, …: an array of parents, the lowest member of a set its root."""

import numpy as np

from placeto.support.arrays import Ints
from placeto.support.jit import inner, njit


def numbered(labels: Ints) -> Ints:
    """Labels renumbered from 0 without gaps, in the order in which they first occur.

    Args:
        labels: (num_items,) labels from 0.

    Returns:
        (num_items,) the same partition, read-only.
    """
    numbers: Ints = _numbered(np.array(labels), int(labels.max(initial=-1)) + 1)
    numbers.flags.writeable = False
    return numbers


def equal_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Pairs of an item and the first item with the same key, for every key from 0 up.

    Args:
        keys: (num_items,) keys; negative for none.
    """
    items = np.flatnonzero(keys >= 0)
    _, first, inverse = np.unique(keys[items], return_index=True, return_inverse=True)
    return items, items[first[inverse]]


def shared_keys(labels: Ints) -> Ints:
    """Keys of the sets of several items, from 0 in the order in which these first occur.

    Args:
        labels: (num_items,) the set of each item.

    Returns:
        (num_items,) keys; -1 for an item on its own.
    """
    _, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    alone = counts == 1
    order = np.argsort(np.where(alone, len(labels), first), kind="stable")
    keys = np.empty(len(first), dtype=np.int64)
    keys[order] = np.arange(len(first))
    keys[alone] = -1
    found: Ints = keys[inverse]
    return found


@inner(cache=True)
def root(parent: Ints, item: int) -> int:  # pragma: no cover
    """The lowest member of an item's set; halves the paths that it walks."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@njit(cache=True)
def join_pairs(parent: Ints, items: Ints, others: Ints) -> None:  # pragma: no cover
    """Joins the sets of each item and the other item beside it."""
    for index in range(len(items)):
        a, b = root(parent, items[index]), root(parent, others[index])
        parent[max(a, b)] = min(a, b)


@njit(cache=True)
def roots(parent: Ints) -> Ints:  # pragma: no cover
    """(num_items,) the lowest member of each item's set."""
    found = np.empty(len(parent), np.int64)
    for item in range(len(parent)):
        found[item] = root(parent, item)
    return found


@njit(cache=True)
def _numbered(labels: Ints, count: int) -> Ints:  # pragma: no cover
    number_of = np.full(count, -1)
    numbers = np.empty(len(labels), np.int64)
    found = 0
    for index in range(len(labels)):
        label = labels[index]
        if number_of[label] < 0:
            number_of[label] = found
            found += 1
        numbers[index] = number_of[label]
    return numbers
