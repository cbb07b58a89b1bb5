import itertools

import numpy as np
import pytest
from hypothesis import assume, given

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, step_times
from placeto.bounds import critical_path, lower_bound, work_bound
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import problems


def independent(fast: list[float], slow: list[float], overhead: float = 0.0) -> PlacementProblem:
    """Ops that nothing joins, on one device of each kind."""
    graph = ComputationGraph(
        name="independent",
        op_names=[f"op{op}" for op in range(len(fast))],
        op_types=["Op"] * len(fast),
        op_seconds={"fast": np.array(fast), "slow": np.array(slow)},
        tensor_producer=np.array([], dtype=np.int64),
        tensor_bytes=np.array([], dtype=np.int64),
        edge_tensor=np.array([], dtype=np.int64),
        edge_consumer=np.array([], dtype=np.int64),
    )
    devices = (Device("f", "fast", 10**9, overhead), Device("s", "slow", 10**9, overhead))
    return PlacementProblem(
        graph, Cluster("unequal", devices, (Channel("bus", ("f", "s"), ("f", "s"), 1.0),)), "none"
    )


@given(problem=problems(max_ops=8))
def test_no_placement_beats_the_bound(problem):
    assume(problem.num_devices**problem.num_groups <= 1000)
    every = list(itertools.product(range(problem.num_devices), repeat=problem.num_groups))
    assert lower_bound(problem) <= step_times(problem, every).min() * (1 + 1e-12)


def test_a_chain_takes_as_long_as_its_ops_on_their_fastest_devices():
    graph = make_graph({"a": 1.0, "b": 2.0, "c": 4.0}, [("a", 9, ["b"]), ("b", 9, ["c"])])
    problem = make_problem(graph, make_cluster(2))
    assert critical_path(problem) == 7.0
    assert work_bound(problem) == 3.5
    assert lower_bound(problem) == 7.0


def test_the_critical_path_is_the_longer_branch():
    graph = make_graph(
        {"a": 1.0, "b": 2.0, "c": 5.0, "d": 1.0},
        [("a", 0, ["b", "c"]), ("b", 0, ["d"]), ("c", 0, ["d"])],
    )
    assert critical_path(make_problem(graph, make_cluster(2))) == 7.0


def test_equal_devices_share_the_work():
    problem = make_problem(make_graph({name: 2.0 for name in "abcd"}), make_cluster(2))
    assert lower_bound(problem) == 4.0


def test_overheads_count_but_for_the_last_on_each_device():
    # Two devices, two ops of 2 s each: 2 + 1 + 2 s until the second ends.
    cluster = make_cluster(2, launch_overhead=1.0)
    problem = make_problem(make_graph({name: 2.0 for name in "abcd"}), cluster)
    assert lower_bound(problem) == pytest.approx(5.0, rel=1e-12)
    assert step_times(problem, [[0, 0, 1, 1]])[0] == 5.0


def test_a_slow_device_takes_less_of_the_work():
    # Three ops on the fast device, one on the slow: 3 s, and no split of ops does better.
    problem = independent([1.0] * 4, [3.0] * 4)
    assert lower_bound(problem) == pytest.approx(3.0, rel=1e-12)
    assert step_times(problem, [[0, 0, 0, 1]])[0] == 3.0


def test_an_op_that_a_device_cannot_run_counts_where_it_can():
    problem = independent([1.0, 1.0], [np.inf, np.inf])
    assert lower_bound(problem) == pytest.approx(2.0, rel=1e-8)


def test_ops_that_take_no_time_are_bounded_by_zero():
    problem = make_problem(make_graph({"a": 0.0, "b": 0.0}), make_cluster(2, launch_overhead=1.0))
    assert lower_bound(problem) == 0.0
