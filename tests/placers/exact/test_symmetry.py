"""Interchangeable devices."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import Channel, Cluster, Device, PlacementProblem
from placeto.placers.exact.branching import interchangeable_devices
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.exact.every_placement import alike_problems
from tests.strategies import placements

CHAIN = make_graph({"a": 1.0, "b": 2.0}, [("a", 4, ["b"])])
ZERO = make_graph({"a": 0.0, "b": 2.0}, [("a", 4, ["b"])])
ZERO_EMPTY = make_graph({"a": 0.0, "b": 2.0}, [("a", 0, ["b"])])


@given(alike_problems(max_ops=12), st.data())
def test_renaming_devices_of_a_class_changes_nothing_but_names(problem, data):
    classes = interchangeable_devices(problem)
    names = np.arange(problem.num_devices)
    for label in set(classes.tolist()):
        alike = np.flatnonzero(classes == label)
        names[alike] = data.draw(st.permutations(alike.tolist()))
    before = np.array(data.draw(placements(problem)))
    outcomes = simulate_many(problem, np.stack([before, names[before]]))
    assert outcomes.step_time[0] == outcomes.step_time[1]
    assert outcomes.peak_memory[0].tolist() == outcomes.peak_memory[1][names].tolist()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("multicast", [False, True])
def test_equal_devices_are_one_class(shared, multicast):
    problem = make_problem(CHAIN, make_cluster(4, shared=shared, multicast=multicast))
    assert interchangeable_devices(problem).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "change", [{"memory_bytes": 7}, {"launch_overhead_seconds": 1.0}, {"kind": "slow"}]
)
def test_an_unequal_device_is_a_class_of_its_own(change):
    cluster = make_cluster(3)
    first, second, third = cluster.devices
    cluster = replace(cluster, devices=(first, replace(second, **change), third))
    graph = replace(CHAIN, op_seconds={**CHAIN.op_seconds, "slow": np.array([2.0, 2.0])})
    assert interchangeable_devices(PlacementProblem(graph, cluster, "none")).tolist() == [0, 1, 0]


def test_a_pin_parts_a_device_from_the_others():
    problem = PlacementProblem(CHAIN, make_cluster(3), "none", pins={0: 1})
    assert interchangeable_devices(problem).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("pairs", "classes"),
    [
        (["01", "23"], [0, 0, 2, 2]),
        (["01"], [0, 0, 2, 2]),
        ([], [0, 0, 0, 0]),
    ],
)
def test_channels_must_be_alike(pairs, classes):
    """Links inside an island are faster than all others."""
    names = ["d0", "d1", "d2", "d3"]
    inside = [(a, b) for pair in pairs for a, b in itertools.permutations(pair)]
    channels = [Channel(f"fast {a}{b}", (f"d{a}",), (f"d{b}",), 2.0) for a, b in inside]
    channels += [
        Channel(f"slow {a}{b}", (f"d{a}",), (f"d{b}",), 1.0)
        for a, b in itertools.permutations("0123", 2)
        if (a, b) not in inside
    ]
    cluster = Cluster("islands", tuple(Device(name, "k", 9) for name in names), tuple(channels))
    assert interchangeable_devices(make_problem(CHAIN, cluster)).tolist() == classes


@pytest.mark.parametrize(
    ("graph", "links", "alike"),
    [
        (ZERO, {}, True),
        (ZERO, {"shared": True}, False),
        (ZERO_EMPTY, {}, False),
        (ZERO_EMPTY, {"latency": 1.0}, True),
        (CHAIN, {"shared": True}, True),
    ],
)
def test_no_device_is_alike_where_one_can_overtake_within_an_instant(graph, links, alike):
    problem = make_problem(graph, make_cluster(2, **links))
    assert interchangeable_devices(problem).tolist() == ([0, 0] if alike else [0, 1])
