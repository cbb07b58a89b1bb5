from dataclasses import replace

import numpy as np

from placeto import Channel, Cluster, Device, PlacementProblem, place
from tests.builders import make_cluster, make_graph, make_problem


def unequal(fast_memory: int, slow_memory: int) -> PlacementProblem:
    """Two ops of 5 bytes of parameters each, on a GPU of 1 s an op and a CPU of 10 s an op."""
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 0, ["b"])], param_bytes={"a": 5, "b": 5})
    graph = replace(graph, op_seconds={"gpu": np.ones(2), "cpu": np.full(2, 10.0)})
    devices = (Device("gpu0", "gpu", fast_memory), Device("cpu0", "cpu", slow_memory))
    names = ("gpu0", "cpu0")
    return PlacementProblem(graph, Cluster("unequal", devices, (Channel("c", names, names, 1.0),)))


def test_the_fastest_device_that_holds_it_all():
    placement = place(unequal(100, 100), "single")
    assert placement.device_names() == ["gpu0"] * len(placement.devices)
    assert placement.step_time == 2.0
    assert placement.evaluations == 2


def test_a_slower_device_if_only_that_holds_it_all():
    placement = place(unequal(9, 10), "single")
    assert set(placement.device_names()) == {"cpu0"}
    assert placement.feasible
    assert placement.step_time == 20.0


def test_cpu_is_the_cpu_however_slow():
    placement = place(unequal(100, 100), "cpu")
    assert set(placement.device_names()) == {"cpu0"}
    assert placement.step_time == 20.0


def test_a_pinned_group_stays_and_the_rest_is_together():
    graph = make_graph({name: 1.0 for name in "abcd"})
    problem = PlacementProblem(graph, make_cluster(3), "none", pins={2: 1})
    placement = place(problem, "single")
    # With d1 the pinned group is with the others, and nothing runs beside them.
    assert placement.devices.tolist() == [0, 0, 1, 0]
    assert placement.step_time == 3.0


def test_one_device_has_one_placement():
    problem = make_problem(make_graph({"a": 1.0, "b": 2.0}), make_cluster(1))
    assert place(problem, "single").devices.tolist() == [0, 0]
