"""Disjoint sets of items 0, 1, …: an array of parents, the lowest member of a set its root."""

import numpy as np

from placeto.support.arrays import Ints
from placeto.support.jit import inner, njit


def numbered(labels: Ints) -> Ints:
    """(num_items,) labels renumbered from 0 in the order in which they first occur; read-only."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers: Ints = np.argsort(np.argsort(first))[inverse]
    numbers.flags.writeable = False
    return numbers


def equal_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Pairs of an item and the first item with the same key, for every key from 0 up."""
    items = np.flatnonzero(keys >= 0)
    _, first, inverse = np.unique(keys[items], return_index=True, return_inverse=True)
    return items, items[first[inverse]]


def shared_keys(labels: Ints) -> Ints:
    """(num_items,) keys of sets of several items, from 0 in the order in which these first occur.

    Labels are the set of each item; the key of an item on its own is -1.
    """
    _, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = counts[inverse] > 1
    keys = np.full(len(labels), -1)
    keys[several] = numbered(labels[several])
    return keys


@inner(cache=True)
def root(parent: Ints, item: int) -> int:
    """The lowest member of an item's set; halves the paths that it walks."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@njit(cache=True)
def join_pairs(parent: Ints, items: Ints, others: Ints) -> None:
    """Joins the sets of each item and the other item beside it."""
    for index in range(len(items)):
        a, b = root(parent, items[index]), root(parent, others[index])
        parent[max(a, b)] = min(a, b)


@njit(cache=True)
def roots(parent: Ints) -> Ints:
    """(num_items,) the lowest member of each item's set."""
    found = np.empty(len(parent), np.int64)
    for item in range(len(parent)):
        found[item] = root(parent, item)
    return found
