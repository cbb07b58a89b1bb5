"""The placer: what it takes on, what it hands on, and when it stops."""

import numpy as np
import pytest

from benchmarks.instances import instance
from placeto import place
from placeto.placers import NotApplicable
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


def test_the_same_seed_gives_the_same_placement_where_the_proof_ends():
    first, second = (place(LARGE, "exact", budget_seconds=60, seed=3) for _ in range(2))
    assert first == second
    assert first.evaluations == second.evaluations


@pytest.mark.parametrize("problem", [LARGE, SMALL])
def test_an_interrupt_leaves_the_best_so_far_and_what_was_proven(problem, monkeypatch):
    # Few placements at once, so that there is a while to interrupt.
    monkeypatch.setattr("placeto.placers.exact.branching.OPS_AT_ONCE", 1)

    def interrupt(message):
        if message.startswith("branch and bound"):
            raise KeyboardInterrupt

    whole = place(problem, "exact", budget_seconds=60)
    placement = place(problem, "exact", budget_seconds=60, progress=interrupt)
    assert placement.interrupted
    assert placement.evaluations < whole.evaluations
    assert whole.step_time * (1 - 1e-8) <= placement.step_time <= place(problem, "etf").step_time
    assert 0.5 * whole.step_time < placement.lower_bound <= whole.step_time


def test_no_placement_fits():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 10, "b": 4})
    placement = place(make_problem(graph, make_cluster(2, memory=9)), "exact")
    assert not placement.feasible
    assert placement.peak_memory.tolist() in ([10, 4], [4, 10])
    assert placement.lower_bound == np.inf


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (41, "41 groups of 41 ops on 4 devices .* 40 groups of 312 ops in all, .* 16 groups"),
        (400, r"--grouping 14\)"),
    ],
)
def test_too_many_groups(groups, message):
    graph = make_graph({f"op{index}": 1.0 for index in range(groups)})
    with pytest.raises(NotApplicable, match=message):
        place(make_problem(graph, make_cluster(4)), "exact")
