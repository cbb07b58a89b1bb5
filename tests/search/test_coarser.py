"""Groups placed several together: which are joined, and what the finer problem gets to know."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, simulate
from placeto.placers import Incumbent
from placeto.search.incumbent import beside_incumbent, coarser, coarser_incumbent
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import pinned


@given(problem=pinned(), max_groups=st.integers(1, 4))
def test_groups_that_may_be_elsewhere_are_not_joined(problem, max_groups):
    coarse, group_of = coarser(problem, max_groups)
    assert (coarse.op_group == group_of[problem.op_group]).all()
    for group in range(problem.num_groups):
        assert (coarse.allowed[group_of[group]] == problem.allowed[group]).all()
    kinds = len(np.unique(problem.allowed, axis=0))
    assert coarse.num_groups <= max_groups * kinds


def test_the_order_is_kept():
    graph = make_graph(dict.fromkeys("abcd", 1.0))
    problem = PlacementProblem(graph, make_cluster(2), "none", order=[3, 1, 2, 1])
    assert coarser(problem, 2)[0].ranks.tolist() == [2, 0, 1, 0]


def test_what_a_device_gains_alone_is_kept():
    problem = make_problem(make_graph(dict.fromkeys("abcd", 1.0)), make_cluster(2))
    assert coarser(problem.with_alone(np.array([0.5, 0.7])), 2)[0].alone.tolist() == [0.5, 0.7]
    incumbent = Incumbent(problem.with_alone(np.array([0.5, 1.2])), 1.0)
    incumbent.offer([0, 0, 0, 0])
    with beside_incumbent(incumbent) as beside:
        assert beside.problem.alone.tolist() == [1.0, 1.2]
        assert (incumbent.step_time, beside.step_time) == (2.0, 4.0)
        beside.offer([0, 0, 0, 1])
    assert (incumbent.step_time, beside.step_time) == (2.0, 3.0)
    assert incumbent.evaluations == 3


@given(problem=pinned(), data=st.data())
def test_the_finer_problem_gets_the_same_placements(problem, data):
    finer = Incumbent(problem, 100.0)
    finer.evaluations = 7
    with coarser_incumbent(finer, 2, 0.5) as coarse:
        choices = [np.flatnonzero(row).tolist() for row in coarse.problem.allowed]
        for _ in range(3):
            coarse.part = "a part"
            coarse.offer([data.draw(st.sampled_from(devices)) for devices in choices])
            coarse.evaluations += 2  # simulated elsewhere
            finer.evaluations += 1
    assert finer.evaluations == 7 + 3 * (1 + 2 + 1)
    assert finer.found_by == "a part"
    assert finer.step_time == coarse.step_time
    assert finer.devices.tolist() == coarse.devices[coarse.group_of].tolist()
    assert finer.peak_memory.tolist() == coarse.peak_memory.tolist()
    assert simulate(problem, finer.devices).step_time == finer.step_time
    assert problem.allowed[np.arange(problem.num_groups), finer.devices].all()


def test_a_share_of_what_is_left_is_its_budget():
    now = 0.0
    problem = make_problem(make_graph(dict.fromkeys("abcd", 1.0)), make_cluster(2))
    finer = Incumbent(problem, 10.0, clock=lambda: now)
    now = 2.0
    with coarser_incumbent(finer, 2, 0.25) as coarse:
        assert coarse.seconds == 2.0
        assert coarse.budget_seconds == 4.0
        now = 3.5
        assert not coarse.expired
        now = 4.0
        assert coarse.expired


def test_an_interrupt_leaves_what_was_handed_on():
    problem = make_problem(make_graph(dict.fromkeys("abcd", 1.0)), make_cluster(2))
    finer = Incumbent(problem, 10.0)
    with pytest.raises(KeyboardInterrupt), coarser_incumbent(finer, 2, 0.5) as coarse:
        coarse.offer([0, 1])
        coarse.evaluations += 9
        raise KeyboardInterrupt
    assert finer.step_time == 2.0
    assert finer.evaluations == 10
