"""The placers of Baechi by hand, and what m-TOPO's cap holds."""

from itertools import pairwise

import numpy as np
from hypothesis import given

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, place
from placeto.heuristics.baechi import filled_in_order
from placeto.heuristics.costs import fastest_devices, without_choice
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import problems

NAMES = [f"op{number}" for number in range(6)]
CHAIN = [(a, 0, [b]) for a, b in pairwise(NAMES)]


def chain(memory, limit, devices=2, **pins) -> PlacementProblem:
    """A chain of ops with so many bytes of parameters each."""
    graph = make_graph(
        dict.fromkeys(NAMES, 1.0), CHAIN, param_bytes=dict(zip(NAMES, memory, strict=True))
    )
    numbers = {NAMES.index(name): device for name, device in pins.items()}
    return PlacementProblem(graph, make_cluster(devices, memory=limit), "none", pins=numbers)


def test_a_share_and_the_largest_group_is_the_cap():
    # 12 bytes in all: 6 and the largest, 2, make 8.
    assert filled_in_order(chain([2] * 6, 100)).tolist() == [0, 0, 0, 0, 1, 1]
    # 4 and 2 make 6 on each of three.
    assert filled_in_order(chain([2] * 6, 100, 3)).tolist() == [0, 0, 0, 1, 1, 1]


def test_less_memory_than_the_cap():
    assert filled_in_order(chain([2] * 6, 7)).tolist() == [0, 0, 0, 1, 1, 1]


def test_a_device_that_was_left_is_not_returned_to():
    # The cap is 11 // 2 + 5; with 4 and 2 on d0, 5 are too many for it, the last 1 would not be.
    problem = chain([4, 2, 5, 0, 0, 0], 10)
    assert filled_in_order(problem).tolist() == [0, 0, 1, 1, 1, 1]


def test_pins_take_their_room_first():
    # Of the 8 bytes of d0's cap, op5 has 2.
    assert filled_in_order(chain([2] * 6, 100, op5=0)).tolist() == [0, 0, 0, 1, 1, 0]


def test_what_no_device_takes_goes_where_most_room_is_left():
    problem = chain([3, 9, 1, 1, 1, 1], 8)
    assert filled_in_order(problem).tolist() == [0, 1, 0, 0, 0, 0]


def test_a_slow_kind_is_not_filled():
    columns = {"fast": np.full(6, 1.0), "slow": np.full(6, 9.0)}
    graph = make_graph(dict.fromkeys(NAMES, 1.0), CHAIN, param_bytes=dict.fromkeys(NAMES, 2))
    graph = ComputationGraph(
        name="unequal",
        op_names=NAMES,
        op_types=["Op"] * 6,
        op_seconds=columns,
        tensor_producer=graph.tensor_producer,
        tensor_bytes=graph.tensor_bytes,
        edge_tensor=graph.edge_tensor,
        edge_consumer=graph.edge_consumer,
        param_bytes=graph.param_bytes,
    )
    devices = (Device("s", "slow", 99), Device("f0", "fast", 99), Device("f1", "fast", 99))
    names = tuple(device.name for device in devices)
    cluster = Cluster("unequal", devices, (Channel("c", names, names, 1.0),))
    problem = PlacementProblem(graph, cluster, "none")
    assert filled_in_order(problem).tolist() == [1, 1, 1, 1, 2, 2]
    for method in ("m-topo", "m-etf", "m-sct"):
        assert 0 not in place(problem, method).devices


@given(problem=problems(max_ops=30))
def test_the_cap_holds_where_nothing_stands_in_the_way(problem):
    memory, fast = problem.group_memory, fastest_devices(problem)
    if without_choice(problem).any() or not problem.allowed[:, fast].all():
        return
    cap = memory.sum() // fast.sum() + memory.max()
    if (problem.memory_limit[fast] < cap).any():
        return
    devices = filled_in_order(problem)
    used = np.bincount(devices, weights=memory, minlength=problem.num_devices)
    assert (used <= cap).all()
    assert fast[devices].all()
    assert (np.diff(devices[problem.group_order]) >= 0).all()


def test_m_sct_waits_for_the_child_of_the_linear_program():
    # x is 0.4 for a's 4 bytes to c and 0.6 for e's byte: c is a's favourite. d0 waits for it from
    # 1 to 3, and b, which m-ETF starts there at 1, goes to d1 at 2.
    graph = make_graph(
        {"a": 1.0, "e": 2.0, "b": 2.0, "c": 9.0},
        [("a", 4, ["c"]), ("e", 1, ["c"]), ("a", 1, ["b"])],
    )
    problem = make_problem(graph, make_cluster(2))
    assert place(problem, "m-etf").devices.tolist() == [0, 1, 0, 0]
    assert place(problem, "m-sct").devices.tolist() == [0, 1, 1, 0]
