"""The model of assignment and schedule against all placements."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem
from placeto.initial import all_on
from placeto.placers import Incumbent
from placeto.placers.exact.solver import solve
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.exact.by_hand import CASES
from tests.placers.exact.every_placement import best_rank, small_problems
from tests.strategies import SCALES, clusters


def solved(problem: PlacementProblem) -> Incumbent:
    incumbent = Incumbent(problem, 60.0)
    incumbent.offer(all_on(problem, 0))
    if incumbent.step_time > 0:
        solve(incumbent, np.random.default_rng(0))
    return incumbent


@given(small_problems())
def test_the_bound_is_never_above_the_best_placement(problem):
    incumbent = solved(problem)
    excess, step_time = best_rank(problem)
    if excess == 0:
        assert incumbent.lower_bound <= step_time
        # Infeasible placements are none of the model's where parameters alone do not fit.
        assert incumbent.lower_bound < np.inf


@st.composite
def chains(draw: st.DrawFn) -> PlacementProblem:
    """A chain of ops that take time, on any cluster with memory enough."""
    scale = draw(SCALES)
    cluster = draw(clusters(scale, max_devices=3))
    count = draw(st.integers(2, 5))
    seconds = [
        draw(st.lists(scale.seconds.filter(bool), min_size=count, max_size=count)) for _ in range(2)
    ]
    names = "abcde"[:count]
    graph = make_graph(
        dict(zip(names, seconds[0], strict=True)),
        [(first, draw(scale.bytes), [second]) for first, second in pairwise(names)],
    )
    columns = {"fast": np.array(seconds[0]), "slow": np.array(seconds[1])}
    object.__setattr__(graph, "op_seconds", columns)
    return PlacementProblem(graph, cluster, "none")


@given(chains())
def test_the_bound_is_the_best_placement_of_a_chain(problem):
    """Nothing waits for anything but its input: the order of service cannot matter."""
    incumbent = solved(problem)
    excess, step_time = best_rank(problem)
    if excess == 0:
        assert incumbent.lower_bound == pytest.approx(step_time, rel=1e-5)
        assert incumbent.step_time == pytest.approx(step_time, rel=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case):
    problem, expected = CASES[case]
    assert solved(problem).lower_bound == pytest.approx(expected, rel=1e-6)


def test_two_sources_queue_on_a_bus():
    """a and b end at 1 on their devices; c gets the one's tensor at 5, the other's at 9."""
    graph = make_graph({"a": 1, "b": 1, "c": 1}, [("a", 4, ["c"]), ("b", 4, ["c"])])
    for shared, expected in ((True, 10.0), (False, 6.0)):
        cluster = make_cluster(3, shared=shared)
        problem = PlacementProblem(graph, cluster, "none", pins={0: 0, 1: 1, 2: 2})
        assert solved(problem).lower_bound == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("memory", "expected"), [(30, 3.0), (29, 4.0), (25, np.inf)])
def test_memory_that_groups_cannot_do_without(memory, expected):
    """b and c fit on one device with 30 bytes; with 29, a and c must share one; with 25, none."""
    graph = make_graph(
        {"a": 3, "b": 2, "c": 1},
        param_bytes={"a": 10, "b": 20, "c": 8},
        temp_bytes={"a": 1, "b": 2, "c": 1},
    )
    if memory == 25:
        graph = make_graph({"a": 3, "b": 2, "c": 1}, param_bytes={"a": 10, "b": 26, "c": 8})
    assert solved(make_problem(graph, make_cluster(2, memory=memory))).lower_bound == (
        pytest.approx(expected, rel=1e-6)
    )
