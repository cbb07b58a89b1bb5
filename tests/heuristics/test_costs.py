"""What heuristics reckon with, by hand."""

from dataclasses import replace

import numpy as np

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem
from placeto.cluster import EndCost
from placeto.heuristics.costs import (
    device_speeds,
    fastest_devices,
    fastest_seconds,
    forward_edges,
    free_room,
    links,
    mean_seconds,
    mean_transfer_seconds,
    without_choice,
)
from tests.builders import make_cluster, make_graph


def unequal(**pins: int) -> PlacementProblem:
    graph = ComputationGraph(
        name="unequal",
        op_names=list("abc"),
        op_types=["Op"] * 3,
        op_seconds={"fast": np.array([1.0, 3.0, np.inf]), "slow": np.array([6.0, 2.0, 5.0])},
        tensor_producer=np.array([0]),
        tensor_bytes=np.array([7]),
        edge_tensor=np.array([0]),
        edge_consumer=np.array([1]),
        param_bytes=np.array([10, 20, 30]),
    )
    channels = (
        Channel("up", ("slow",), ("fast",), bandwidth=2.0, latency_seconds=1.0),
        Channel("down", ("fast",), ("slow",), bandwidth=4.0, overhead_seconds=0.5),
    )
    devices = (Device("slow", "slow", 100), Device("fast", "fast", 50))
    numbers = {"abc".index(name): device for name, device in pins.items()}
    return PlacementProblem(graph, Cluster("unequal", devices, channels), "none", pins=numbers)


def test_a_transfer_takes_latency_overhead_and_its_bytes():
    startup, pace = links(unequal())
    assert startup.tolist() == [[0.0, 1.0], [0.5, 0.0]]
    assert pace.tolist() == [[0.0, 0.5], [0.25, 0.0]]
    assert mean_transfer_seconds(unequal(), np.array([0, 8])).tolist() == [0.75, 0.75 + 3.0]


def test_a_transfer_costs_its_ends_what_they_cost_on_the_line_between_all_sizes():
    # The tensors have 2 and 10 bytes: sent down 3 and 3 + 1 s, received 0 and 5 s; up nothing.
    problem = unequal()
    up, down = problem.cluster.channels
    down = replace(
        down, send=(EndCost(0, 3.0), EndCost(10, 3.0, 0.1)), receive=(EndCost(3, 0.0, 0.5),)
    )
    graph = replace(problem.graph, tensor_producer=np.array([0, 1]), tensor_bytes=np.array([2, 10]))
    cluster = replace(problem.cluster, channels=(up, down))
    startup, pace = links(PlacementProblem(graph, cluster, "none"))
    assert startup.tolist() == [[0.0, 1.0], [0.5 + 3.0 - 2 * 0.75, 0.0]]
    assert pace.tolist() == [[0.0, 0.5], [0.25 + 0.75, 0.0]]


def test_seconds_of_devices_that_a_group_may_be_on():
    assert mean_seconds(unequal()).tolist() == [3.5, 2.5, 5.0]
    assert fastest_seconds(unequal()).tolist() == [1.0, 2.0, 5.0]
    assert fastest_seconds(unequal(b=1)).tolist() == [1.0, 3.0, 5.0]


def test_speeds_at_what_runs_everywhere():
    assert device_speeds(unequal(), np.arange(2)).tolist() == [0.5, 1.0]  # 8 s and 4 s of a and b
    assert device_speeds(unequal(), np.array([0])).tolist() == [1.0]
    assert fastest_devices(unequal()).tolist() == [False, True]


def test_room_that_is_left_to_those_with_a_choice():
    assert without_choice(unequal()).tolist() == [False, False, True]
    assert free_room(unequal()).tolist() == [70, 50]
    assert free_room(unequal(b=1, a=0)).tolist() == [70 - 17, 30]


def test_edges_against_the_order_are_left_out():
    # a and c are one group, before b's.
    graph = make_graph(
        {"a": 1.0, "b": 1.0, "c": 1.0},
        [("a", 3, ["b"]), ("b", 4, ["c"])],
        colocation={"a": 1, "c": 1},
    )
    edges = forward_edges(PlacementProblem(graph, make_cluster(2), "none"))
    assert [column.tolist() for column in edges] == [[0], [1], [3]]
