"""METIS's partitions counted again, and what it is asked for."""

import numpy as np
import pytest

from placeto import place
from placeto.heuristics.metis import IMBALANCE, metis_parts
from placeto.heuristics.partition import partition_graph
from tests.heuristics.partitions import (
    best_random_cut,
    check_balance,
    inception,
    slow_cpu,
    two_cliques,
)

SHARES = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("shares", [np.full(2, 1 / 2), np.full(4, 1 / 4), SHARES])
@pytest.mark.parametrize("seed", [0, 1])
def test_cut_and_balance_counted_again(shares, seed):
    problem = inception("k80x4")
    graph, _ = partition_graph(problem, np.arange(4))
    parts, cut = metis_parts(graph, shares, seed)
    pairs = {}
    for source, target, size in zip(*(c.tolist() for c in problem.group_edges), strict=True):
        if parts[source] != parts[target]:
            pair = min(source, target), max(source, target)
            pairs[pair] = pairs.get(pair, 0) + size
    total = problem.group_edges[2].sum()
    assert total > 2**28  # so that bytes are scaled
    assert cut == sum(max(round(size * 2**28 / total), 1) for size in pairs.values())
    check_balance(graph, parts, shares, IMBALANCE)
    assert cut < best_random_cut(graph, shares) / 4


def test_the_only_good_cut():
    placement = place(two_cliques(), "metis")
    assert len(set(placement.devices[:5])) == len(set(placement.devices[5:])) == 1
    assert placement.devices[0] != placement.devices[5]


def test_what_is_pinned_elsewhere_moves_there():
    placement = place(two_cliques(a0=0, b3=0, b4=1), "metis")
    assert placement.devices[[0, 8, 9]].tolist() == [0, 0, 1]


def test_a_slow_device_gets_its_share():
    assert np.bincount(place(slow_cpu(), "metis").devices).tolist() == [40, 40, 10]
