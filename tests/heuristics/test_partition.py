"""Weights of the partitioners' graph by hand, and against the problem's arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem
from placeto.heuristics.partition import TOTAL, partition_graph
from tests.builders import make_cluster, make_graph, make_problem
from tests.heuristics.partitions import cut_weight
from tests.strategies import problems


def test_by_hand():
    graph = make_graph(
        {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0},
        [("a", 3, ["b", "c"]), ("b", 5, ["c"]), ("c", 0, ["d"])],
    )
    built, groups = partition_graph(make_problem(graph, make_cluster(2)), np.arange(2))
    assert groups.tolist() == [0, 1, 2, 3]
    assert built.start.tolist() == [0, 2, 4, 7, 8]
    assert built.neighbour.tolist() == [1, 2, 0, 2, 0, 1, 3, 2]
    assert built.edge_weight.tolist() == [3, 3, 3, 5, 3, 5, 1, 1]
    assert built.vertex_weight.tolist() == [TOTAL // 4, TOTAL // 2, TOTAL // 4, 1]
    assert cut_weight(built, np.array([0, 0, 1, 1])) == 8
    assert cut_weight(built, np.array([0, 1, 1, 0])) == 7


def test_both_directions_of_a_cycle_are_one_edge():
    graph = make_graph(
        {"a": 1.0, "b": 1.0, "c": 1.0},
        [("a", 3, ["b"]), ("b", 4, ["c"])],
        colocation={"a": 1, "c": 1},
    )
    built, _ = partition_graph(make_problem(graph, make_cluster(2)), np.arange(2))
    assert built.edge_weight.tolist() == [7, 7]


def test_work_is_counted_on_the_fastest_device_that_a_group_may_be_on():
    graph = ComputationGraph(
        name="unequal",
        op_names=list("abc"),
        op_types=["Op"] * 3,
        op_seconds={"fast": np.array([1.0, 1.0, np.inf]), "slow": np.array([4.0, 0.5, 9.0])},
        tensor_producer=np.array([0, 1]),
        tensor_bytes=np.array([2, 2]),
        edge_tensor=np.array([0, 1]),
        edge_consumer=np.array([1, 2]),
    )
    devices = (Device("slow", "slow", 99), Device("fast", "fast", 99))
    channels = (Channel("c", ("slow", "fast"), ("slow", "fast"), 1.0),)
    problem = PlacementProblem(graph, Cluster("unequal", devices, channels), "none")
    # On a and b the slow one takes 4.5 s, the fast one 2 s: its speed is 2/4.5.
    built, _ = partition_graph(problem, np.arange(2))
    expected = np.array([1.0, 1.0, 9.0 * 2 / 4.5])
    assert np.allclose(built.vertex_weight / TOTAL, expected / expected.sum())
    without, groups = partition_graph(problem, np.array([1]))
    assert groups.tolist() == [0, 1]
    assert without.edge_weight.tolist() == [2, 2]


@given(problem=problems(max_ops=30), data=st.data())
def test_the_cut_is_the_bytes_between_devices(problem, data):
    built, groups = partition_graph(problem, np.arange(problem.num_devices))
    device = st.integers(0, problem.num_devices - 1)
    parts = np.array(data.draw(st.lists(device, min_size=len(groups), max_size=len(groups))))
    exchanged = {}
    for source, target, size in zip(*(c.tolist() for c in problem.group_edges), strict=True):
        pair = min(source, target), max(source, target)
        exchanged[pair] = exchanged.get(pair, 0) + size
    total = sum(exchanged.values())
    scale = min(1.0, TOTAL / max(total, 1))
    cut = sum(
        max(round(size * scale), 1) for (a, b), size in exchanged.items() if parts[a] != parts[b]
    )
    assert cut_weight(built, parts) == cut
    assert (built.vertex_weight > 0).all()
    assert (built.edge_weight > 0).all()
