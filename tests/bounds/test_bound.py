from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from placeto import (
    Channel,
    Cluster,
    ComputationGraph,
    Device,
    PlacementProblem,
    load_cluster,
    load_graph,
    place,
    step_times,
)
from placeto.bounds import critical_path, lower_bound, work_bound
from placeto.bounds.bound import group_bound
from placeto.bounds.fill import fill_bound
from placeto.bounds.heads import join_heads, path_heads
from placeto.bounds.memory import fitting_devices
from placeto.bounds.queues import queue_pairs
from placeto.bounds.relaxed import mirror, relax
from placeto.bounds.work import window_bound
from placeto.cluster import EndCost, Link
from tests.bounds.brute_force import Enumerated, enumerate_all, enumerated
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import clusters_of_links, examples

ROUNDING = 1 + 1e-9
NO_PAIRS = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def independent(fast: list[float], slow: list[float], **params: list[int]) -> PlacementProblem:
    """Ops that nothing joins, on one device of each kind; `fast` has 10 bytes."""
    graph = ComputationGraph(
        name="independent",
        op_names=[f"op{op}" for op in range(len(fast))],
        op_types=["Op"] * len(fast),
        op_seconds={"fast": np.array(fast), "slow": np.array(slow)},
        tensor_producer=np.array([], dtype=np.int64),
        tensor_bytes=np.array([], dtype=np.int64),
        edge_tensor=np.array([], dtype=np.int64),
        edge_consumer=np.array([], dtype=np.int64),
        **{name: np.array(column) for name, column in params.items()},
    )
    devices = (Device("f", "fast", 10), Device("s", "slow", 10**9))
    return PlacementProblem(
        graph, Cluster("unequal", devices, (Channel("bus", ("f", "s"), ("f", "s"), 1.0),)), "none"
    )


@examples(200)
@given(every=enumerated())
def test_no_feasible_placement_beats_the_bound(every: Enumerated) -> None:
    assert_bounds(every)


@examples(250)
@given(every=enumerated(made=clusters_of_links, ranked=True))
def test_no_feasible_placement_with_parts_and_ranks_beats_the_bound(every: Enumerated) -> None:
    assert_bounds(every)


def assert_bounds(every: Enumerated) -> None:
    assert lower_bound(every.problem) <= every.least_feasible * ROUNDING
    assert critical_path(every.problem) <= every.least * ROUNDING
    assert work_bound(every.problem) <= every.least_feasible * ROUNDING


@examples(150)
@given(every=enumerated() | enumerated(made=clusters_of_links, ranked=True))
def test_no_feasible_placement_beats_any_part_of_the_bound(every: Enumerated) -> None:
    # Of placements on several devices, where one alone is faster.
    problem = replace(every.problem, graph=replace(every.problem.graph, meta={}))
    least = enumerate_all(problem).least_feasible * ROUNDING
    allowed = fitting_devices(problem)
    for pairs in (NO_PAIRS, queue_pairs(problem, allowed)):
        relaxed = relax(problem, allowed, pairs)
        for reach in (0, 1, 3, 100):
            ways = (relaxed, mirror(relaxed))
            heads, tails = (
                path_heads(way) if reach == 0 else join_heads(way, reach) for way in ways
            )
            assert (heads + relaxed.seconds).min(axis=1).max() <= least
            assert (tails[::-1] + relaxed.seconds).min(axis=1).max() <= least
            assert group_bound(relaxed, heads, tails[::-1]) <= least
            assert window_bound(problem, relaxed, heads, tails[::-1]) <= least
            assert fill_bound(problem, relaxed, heads, tails[::-1]) <= least


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


def test_a_chain_pays_the_launch_overhead_or_the_transfer():
    graph = make_graph({"a": 1.0, "b": 2.0}, [("a", 3, ["b"])])
    on_one = make_cluster(2, launch_overhead=0.5)
    assert critical_path(make_problem(graph, on_one)) == 3.5
    apart = make_cluster(2, launch_overhead=0.5, bandwidth=12.0, latency=0.125)
    assert critical_path(make_problem(graph, apart)) == 3.375
    assert enumerate_all(make_problem(graph, apart)).least == 3.375


def test_all_but_one_device_wait_for_their_first_op():
    # a [0, 2) on one device, which then has 6.5 s of work until 8.5; the other has its first op
    # at 3, when what a made is there, and 5.5 s of work. Divided without that they have 7 s each.
    seconds = {"a": 2.0, "b": 3.5, "c": 3.0, "d": 3.0, "e": 2.5}
    graph = make_graph(seconds, [("a", 1, ["b", "c", "d", "e"])])
    problem = make_problem(graph, make_cluster(2))
    assert work_bound(problem) == 7.0
    assert lower_bound(problem) == enumerate_all(problem).least == 8.5
    # Likewise at the end: where time runs backwards.
    graph = make_graph(seconds, [(name, 1, ["a"]) for name in "bcde"])
    problem = make_problem(graph, make_cluster(2))
    assert 8.5 <= lower_bound(problem) <= enumerate_all(problem).least


def test_a_chain_has_no_use_for_a_second_device():
    # With it, it would wait: (4 + 3) / 2 s. But the first may do it all.
    graph = make_graph({"a": 2.0, "b": 2.0}, [("a", 9, ["b"])])
    assert lower_bound(make_problem(graph, make_cluster(2))) == 4.0


def test_kinds_force_transfers():
    # a runs on f alone and b on s alone: 1 + 4 bytes at 1 byte/s + 2.
    graph = make_graph({"a": 1.0, "b": 2.0}, [("a", 4, ["b"])])
    unequal = independent([1.0, np.inf], [np.inf, 2.0])
    columns = {"op_seconds": unequal.graph.op_seconds}
    graph = ComputationGraph(**{**_fields(graph), **columns})
    problem = PlacementProblem(graph, unequal.cluster, "none")
    assert lower_bound(problem) == critical_path(problem) == 7.0


def test_channels_are_as_fast_as_they_are_in_each_direction():
    # a on f, b on s, c on f: 4 bytes there at 4 bytes/s, 4 bytes back at 1 byte/s.
    unequal = independent([1.0, np.inf, 1.0], [np.inf, 1.0, np.inf])
    there, back = Channel("there", ("f",), ("s",), 4.0), Channel("back", ("s",), ("f",), 1.0)
    cluster = Cluster("one way", unequal.cluster.devices, (there, back))
    for tensors, bound in (
        ([("a", 4, ["b"])], 3.0),
        ([("b", 4, ["c"])], 6.0),
        ([("a", 4, ["b"]), ("b", 4, ["c"])], 8.0),
    ):
        graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0}, tensors)
        graph = ComputationGraph(**{**_fields(graph), "op_seconds": unequal.graph.op_seconds})
        problem = PlacementProblem(graph, cluster, "none")
        assert lower_bound(problem) == enumerate_all(problem).least == bound


def test_what_is_transferred_flows_through_its_parts():
    # a on f, b on s. f sends 8 bytes in 1 s, though it rests after a; `in`, the narrowest link,
    # takes 4 s, and both are 0.5 s away: 1 + 4 + 1 + 2.
    unequal = independent([1.0, np.inf], [np.inf, 2.0])
    devices = tuple(replace(d, launch_overhead_seconds=0.5) for d in unequal.cluster.devices)
    there = Channel("there", ("f",), ("s",), path=("out", "in"), send=(EndCost(0, 1.0),))
    back = Channel("back", ("s",), ("f",), 1.0)
    links = (Link("out", 4.0, 0.5), Link("in", 2.0, 0.5))
    graph = make_graph({"a": 1.0, "b": 2.0}, [("a", 8, ["b"])])
    graph = replace(graph, op_seconds=unequal.graph.op_seconds)
    problem = PlacementProblem(graph, Cluster("l", devices, (there, back), links=links), "none")
    assert lower_bound(problem) == critical_path(problem) == enumerate_all(problem).least == 8.0
    # To receive takes longer than all links: the slowest part counts.
    slow = replace(there, receive=(EndCost(0, 1.0), EndCost(8, 0.0, 1.0)))
    problem = PlacementProblem(graph, Cluster("l", devices, (slow, back), links=links), "none")
    assert lower_bound(problem) == critical_path(problem) == enumerate_all(problem).least == 12.0


def test_with_ranks_no_order_is_known():
    # As in the test of the filter's gradient, but x and z go before w by their ranks.
    graph = make_graph(
        {"y": 1.0, "w": 2.0, "x": 1.0, "z": 1.0, "last": 1.0},
        [("y", 0, ["x", "w"]), ("x", 0, ["z"]), ("z", 0, ["last"])],
    )
    groups = np.array([0, 1, 1, 1, 2])
    assert lower_bound(PlacementProblem(graph, make_cluster(2), groups)) == 6.0
    ranked = PlacementProblem(graph, make_cluster(2), groups, order=[0, 2, 1, 1, 1])
    assert lower_bound(ranked) <= enumerate_all(ranked).least == 5.0


def test_ops_of_a_group_are_on_one_device():
    # Apart, a -> b is faster on f and s; the group is on one of them.
    unequal = independent([1.0, 9.0], [9.0, 1.0])
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 1, ["b"])])
    graph = ComputationGraph(**{**_fields(graph), "op_seconds": unequal.graph.op_seconds})
    assert lower_bound(PlacementProblem(graph, unequal.cluster, "none")) == 3.0
    together = PlacementProblem(graph, unequal.cluster, np.zeros(2, int))
    assert critical_path(together) == lower_bound(together) == 10.0


def test_branches_before_a_join_are_one_after_the_other_or_transferred():
    # c waits for a and b: 4 s apart or 5 s together; with slow channels together.
    graph = make_graph(
        {"a": 2.0, "b": 2.0, "c": 1.0}, [("a", 1, ["c"]), ("b", 1, ["c"])]
    )  # fmt: skip
    quick = make_problem(graph, make_cluster(2, bandwidth=2.0))
    assert critical_path(quick) == 3.0
    assert lower_bound(quick) == enumerate_all(quick).least == 3.5
    slow = make_problem(graph, make_cluster(2, bandwidth=0.25))
    assert lower_bound(slow) == enumerate_all(slow).least == 5.0


def test_branches_after_a_fork_are_one_after_the_other_or_transferred():
    graph = make_graph({"a": 1.0, "b": 2.0, "c": 2.0}, [("a", 1, ["b", "c"])])
    quick = make_problem(graph, make_cluster(2, bandwidth=2.0))
    assert lower_bound(quick) == enumerate_all(quick).least == 3.5
    slow = make_problem(graph, make_cluster(2, bandwidth=0.25))
    assert lower_bound(slow) == enumerate_all(slow).least == 5.0


def test_overheads_between_the_branches_of_a_join_and_of_a_fork_count():
    joined = make_graph({"a": 2.0, "b": 2.0, "c": 1.0}, [("a", 1, ["c"]), ("b", 1, ["c"])])
    forked = make_graph({"a": 1.0, "b": 2.0, "c": 2.0}, [("a", 1, ["b", "c"])])
    for graph in (joined, forked):
        problem = make_problem(graph, make_cluster(2, bandwidth=0.01, launch_overhead=0.5))
        assert lower_bound(problem) == enumerate_all(problem).least == 6.0


def test_a_branch_elsewhere_is_transferred_both_ways():
    # b elsewhere: 1 + 1 + 4 + 1; c too would be later. Together 1 + 4 + 4 + 1.
    graph = make_graph(
        {"a": 1.0, "b": 4.0, "c": 4.0, "d": 1.0},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    problem = make_problem(graph, make_cluster(2))
    assert critical_path(problem) == 6.0
    assert lower_bound(problem) <= enumerate_all(problem).least == 7.0
    assert lower_bound(problem) == 7.0


def test_a_branch_may_be_elsewhere_though_both_its_ends_are_in_one_group():
    graph = make_graph(
        {"a": 1.0, "b": 4.0, "c": 4.0, "d": 1.0},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    problem = PlacementProblem(graph, make_cluster(2), np.array([0, 1, 2, 0]))
    assert lower_bound(problem) == enumerate_all(problem).least == 8.0


def test_a_filters_gradient_delays_what_waits_for_the_inputs():
    # y, x and w are ready together; w has the higher number, but comes before z.
    graph = make_graph(
        {"y": 1.0, "x": 1.0, "w": 2.0, "z": 1.0, "last": 1.0},
        [("y", 0, ["x", "w"]), ("x", 0, ["z"]), ("z", 0, ["last"])],
    )
    problem = PlacementProblem(graph, make_cluster(2), np.array([0, 1, 1, 1, 2]))
    assert critical_path(problem) == 4.0
    assert lower_bound(problem) == enumerate_all(problem).least == 6.0


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


def test_devices_share_work_by_what_each_is_good_at():
    # The linear program gives the slow device its op and 1/11 of another: 1 + 10/11 s.
    problem = independent([1.0, 10.0, 1.0], [10.0, 1.0, 10.0])
    assert work_bound(problem) == pytest.approx(21 / 11, rel=1e-9)
    assert lower_bound(problem) <= enumerate_all(problem).least == 2.0


def test_parameters_that_do_not_fit_force_work_elsewhere():
    # The fast device has 10 bytes: one op of two.
    problem = independent([1.0, 1.0], [8.0, 8.0], param_bytes=[10, 10])
    assert work_bound(problem) == pytest.approx(8.0, rel=1e-9)
    roomy_enough = independent([1.0, 1.0], [8.0, 8.0], param_bytes=[5, 5])
    assert work_bound(roomy_enough) == pytest.approx(2 * 8 / 9, rel=1e-9)


def test_a_group_that_is_too_large_for_the_fast_device_is_on_the_slow_one():
    assert lower_bound(independent([1.0], [8.0], param_bytes=[11])) == 8.0


def test_work_after_a_late_head_has_less_time():
    # b to e start after a and share two devices: 3 + 4 / 2.
    graph = make_graph(
        {"a": 3.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}, [("a", 0, ["b", "c", "d", "e"])]
    )
    problem = make_problem(graph, make_cluster(2))
    assert lower_bound(problem) == enumerate_all(problem).least == 5.0


def test_an_op_that_a_device_cannot_run_counts_where_it_can():
    problem = independent([1.0, 1.0], [np.inf, np.inf])
    assert lower_bound(problem) == pytest.approx(2.0, rel=1e-8)


def test_ops_that_take_no_time_are_bounded_by_zero():
    problem = make_problem(make_graph({"a": 0.0, "b": 0.0}), make_cluster(2, launch_overhead=1.0))
    assert lower_bound(problem) == 0.0


def test_pins_raise_the_bound():
    problem = independent([1.0] * 4, [3.0] * 4)
    pinned = PlacementProblem(problem.graph, problem.cluster, "none", pins={0: 1, 1: 1})
    assert lower_bound(pinned) == pytest.approx(6.0, rel=1e-9)


@pytest.mark.parametrize("cluster", ["k80x4", "a100x2-v100x2-cpu"])
@pytest.mark.parametrize("graph", ["inception_v3", "nmt"])
def test_the_bound_of_a_bundled_graph_is_below_what_placers_find(graph, cluster):
    problem = PlacementProblem(load_graph(graph), load_cluster(cluster))
    bound = lower_bound(problem)
    assert max(critical_path(problem), work_bound(problem)) < bound
    assert bound <= min(place(problem, name).step_time for name in ("single", "random", "etf"))


def _fields(graph: ComputationGraph) -> dict[str, object]:
    names = ("name", "op_names", "op_types", "tensor_producer", "tensor_bytes", "edge_tensor")
    return {name: getattr(graph, name) for name in (*names, "edge_consumer", "op_seconds")}
