"""The placer: what it takes on, what it hands on, and when it stops."""

import numpy as np
import pytest

from benchmarks.instances import instance
from placeto import place
from tests.builders import make_cluster, make_graph, make_problem

# 21 groups on 3 devices: too many placements to look at.
LARGE = instance("layered-26-three-ample")
SMALL = instance("fork-11-three-unequal")


def test_fork_and_join_by_hand():
    """Apart, b and c take 3 s at once, and a transfer of 1 s before or after: 1 + 1 + 3 + 1."""
    graph = make_graph(
        {"a": 1, "b": 3, "c": 3, "d": 1},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    placement = place(make_problem(graph, make_cluster(2)), "exact")
    assert placement.step_time == 6.0
    assert placement.lower_bound == pytest.approx(6.0)
    assert len(set(placement.devices[[1, 2]])) == 2


def test_many_groups_of_few_ops():
    """Too many placements to simulate them all, but bounds rule out what is left."""
    placement = place(LARGE, "exact", budget_seconds=60)
    assert placement.step_time <= place(LARGE, "etf").step_time
    assert placement.lower_bound == pytest.approx(placement.step_time, rel=2e-5)
    assert placement.wall_seconds < 60


def test_no_placement_fits():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 10, "b": 4})
    placement = place(make_problem(graph, make_cluster(2, memory=9)), "exact")
    assert not placement.feasible
    assert placement.peak_memory.tolist() in ([10, 4], [4, 10])
    assert placement.lower_bound == np.inf
