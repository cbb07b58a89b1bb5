"""Bounds of partial placements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto.heuristics.initial import single_devices
from placeto.placers.exact.relaxation import UNPLACED, bounds, relaxation_of
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.exact.by_hand import CASES
from tests.placers.exact.every_placement import all_placements, ranks, small_problems

ROUNDING = 1 - 1e-9


@given(small_problems(), st.data())
def test_no_completion_is_below_the_bounds(problem, data):
    every = all_placements(problem)
    outcomes = simulate_many(problem, every)
    rank = ranks(problem, outcomes)
    placement = every[data.draw(st.integers(0, len(every) - 1))]
    free = data.draw(
        st.lists(st.booleans(), min_size=problem.num_groups, max_size=problem.num_groups)
    )
    partial = np.where(free, UNPLACED, placement)
    (seconds,), (excess,) = bounds(relaxation_of(problem), partial[None])
    completions = (every[:, ~np.array(free)] == partial[~np.array(free)]).all(axis=1)
    least_over = min(over for (over, _), here in zip(rank, completions, strict=True) if here)
    if (problem.alone < 1).any():
        seconds = min(seconds, simulate_many(problem, single_devices(problem)).step_time.min())
    assert seconds * ROUNDING <= outcomes.step_time[completions].min()
    assert excess <= least_over


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case):
    problem, expected = CASES[case]
    placement = problem.allowed.argmax(axis=1)
    assert simulate_many(problem, placement[None]).step_time.item() == expected
    seconds, _ = bounds(relaxation_of(problem), placement[None])
    assert seconds.tolist() == [expected]


def test_heads_and_tails_of_a_device():
    """Two ops of 2 s on d1 wait for 1 s before, and 3 s come after, on d0."""
    graph = make_graph(
        {"a": 1, "b": 2, "c": 2, "d": 3}, [("a", 0, ["b", "c"]), ("b", 0, ["d"]), ("c", 0, ["d"])]
    )
    problem = make_problem(graph, make_cluster(2))
    (seconds,), _ = bounds(relaxation_of(problem), np.array([[0, 1, 1, 0]]))
    assert seconds == 1 + 2 + 2 + 3
    # While c may be elsewhere, it is one chain.
    (seconds,), _ = bounds(relaxation_of(problem), np.array([[0, 1, UNPLACED, 0]]))
    assert seconds == 1 + 2 + 3


def test_unplaced_work_is_shared_out():
    problem = make_problem(make_graph(dict.fromkeys("abcd", 1.0)), make_cluster(2))
    seconds, _ = bounds(relaxation_of(problem), np.array([[UNPLACED] * 4, [0, 0, 0, UNPLACED]]))
    assert seconds.tolist() == [2.0, 3.0]


def test_groups_without_a_device_may_be_apart():
    """b need not wait for the launch overhead: on another device it has a's output at once."""
    graph = make_graph({"a": 1, "b": 1}, [("a", 0, ["b"])])
    problem = make_problem(graph, make_cluster(2, launch_overhead=0.5))
    seconds, _ = bounds(relaxation_of(problem), np.array([[UNPLACED, UNPLACED], [0, 0]]))
    assert seconds.tolist() == [2.0, 2.5]


def test_bytes_over_the_limits():
    """Parameters add up; of ops that run, with what they read and write, the largest counts."""
    graph = make_graph(
        {"a": 1, "b": 1, "zero": 0},
        [("a", 3, ["b"])],
        param_bytes={"a": 10, "b": 20, "zero": 1},
        temp_bytes={"a": 5, "b": 4, "zero": 99},
    )
    problem = make_problem(graph, make_cluster(2, memory=25))
    _, excess = bounds(relaxation_of(problem), np.array([[0, 0, 0], [0, 1, 1], [0, UNPLACED, 0]]))
    assert excess.tolist() == [31 + 8 - 25, 21 + 7 - 25, 0]
