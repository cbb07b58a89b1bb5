"""Branch and bound against all placements."""

import math

import numpy as np
import pytest
from hypothesis import given

from benchmarks.instances import instance, optima
from placeto.heuristics.etf import earliest_finish
from placeto.heuristics.initial import all_on
from placeto.placers import Incumbent
from placeto.placers.exact.branching import branch_and_bound, log_symmetric_copies
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.exact.every_placement import best_rank, small_problems

FOUR = make_graph({"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0})


@given(small_problems())
def test_finds_the_best_placement_of_all(problem):
    incumbent = Incumbent(problem, 60.0)
    branch_and_bound(incumbent)
    excess, step_time = best_rank(problem)
    over = np.maximum(incumbent.peak_memory - problem.memory_limit, 0).sum()
    assert over == excess
    assert incumbent.step_time == pytest.approx(step_time, rel=1e-8)
    if excess == 0:
        assert step_time * (1 - 1e-8) <= incumbent.lower_bound <= step_time
    else:
        assert incumbent.lower_bound == np.inf


def test_by_hand():
    """Of 8 s of work on two devices, 4 s each; launch overheads only between ops."""
    problem = make_problem(FOUR, make_cluster(2, launch_overhead=0.5))
    incumbent = Incumbent(problem, 60.0)
    branch_and_bound(incumbent)
    assert incumbent.step_time == 4.5
    assert incumbent.lower_bound == pytest.approx(4.5)


@pytest.mark.parametrize("name", ["chain-12-two-unequal", "fork-12-two-tight"])
def test_an_optimum_that_is_hardly_better_than_what_is_known(name):
    problem = instance(name)
    incumbent = Incumbent(problem, 60.0)
    known = incumbent.offer(earliest_finish(problem))
    branch_and_bound(incumbent)
    assert incumbent.step_time == pytest.approx(optima()[name], rel=1e-8)
    assert 0.98 * known < incumbent.step_time < known


def test_a_placement_that_fits_is_better_than_a_faster_one_that_does_not():
    """Both on one device are done in 2 s; apart, the tensor takes 4 s more."""
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 4, ["b"])], param_bytes={"a": 10, "b": 10})
    problem = make_problem(graph, make_cluster(2, memory=15))
    incumbent = Incumbent(problem, 60.0)
    assert incumbent.offer([0, 0]) == 2.0
    branch_and_bound(incumbent)
    assert incumbent.feasible
    assert incumbent.step_time == 6.0


def test_equal_devices_are_tried_once():
    """4 groups go into at most 4 unnamed sets in 15 ways, onto 4 named devices in 256."""
    problem = make_problem(FOUR, make_cluster(4))
    assert log_symmetric_copies(problem) == pytest.approx(math.log(24))
    incumbent = Incumbent(problem, 60.0)
    branch_and_bound(incumbent)
    assert incumbent.evaluations <= 15


def test_nothing_is_simulated_where_the_bound_is_met():
    chain = make_graph({"a": 1.0, "b": 1.0}, [("a", 4, ["b"])])
    problem = make_problem(chain, make_cluster(3))
    incumbent = Incumbent(problem, 60.0)
    incumbent.offer(all_on(problem, 0))
    branch_and_bound(incumbent)
    assert incumbent.evaluations == 1
    assert incumbent.lower_bound == pytest.approx(2.0)


@given(small_problems())
def test_what_is_proven_when_the_time_is_up_holds(problem):
    incumbent = Incumbent(problem, 1e-9)
    incumbent.offer(problem.allowed.argmax(axis=1))
    branch_and_bound(incumbent)
    excess, step_time = best_rank(problem)
    singles = problem.num_devices if (problem.alone < 1).any() else 0
    assert incumbent.evaluations == 1 + singles
    assert incumbent.lower_bound <= (step_time if excess == 0 else np.inf)
