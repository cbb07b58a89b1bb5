"""What holds for every placer on a step of several microbatches that has an order."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, place
from placeto.cluster import Channel, Cluster, Device
from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.placers import PLACERS
from tests.builders import make_graph
from tests.simulation.test_against_reference import assert_equals_reference

LAYERS, MICROBATCHES = 4, 3
TICKS = 60  # what an anytime placer has of a clock that goes on with every look at it


@pytest.fixture(scope="module")
def problem():
    """Layers forward and back for each microbatch, and updates; the last on a CPU alone.

    The first layer is pinned to the second device, and the second has no kernel for the CPU.
    """
    seconds, tensors, microbatch, phase, copy_of, first = {}, [], [], [], [], {}
    layers = range(LAYERS)
    for part in range(MICROBATCHES):
        path = [(f"layer_{layer}/forward", layer, FORWARD) for layer in layers]
        path += [(f"layer_{layer}/back", layer, BACKWARD) for layer in reversed(layers)]
        for name, layer, way in path:
            op = f"{part}/{name}"
            first.setdefault(name, len(seconds))
            copy_of.append(first[name] if part else -1)
            microbatch.append(part)
            phase.append(way)
            seconds[op] = 1.0 + layer / 2 + way
        names = [f"{part}/{name}" for name, *_ in path]
        tensors += [(one, 1, [other]) for one, other in itertools.pairwise(names)]
    for layer in layers:
        seconds[op := f"layer_{layer}/update"] = 0.25
        gradients = [f"{part}/layer_{layer}/back" for part in range(MICROBATCHES)]
        tensors += [(each, 0, [op]) for each in gradients]
        microbatch.append(-1)
        phase.append(UPDATE)
        copy_of.append(-1)
    graph = make_graph(seconds, tensors)
    slow = graph.op_seconds["k"] * 2
    slow[["layer_1" in name for name in graph.op_names]] = np.inf
    graph = replace(graph, op_seconds={"k": graph.op_seconds["k"], "cpu": slow},
                    microbatch=microbatch, phase=phase, copy_of=copy_of)  # fmt: skip
    devices = (Device("a", "k", 100), Device("b", "k", 100), Device("c", "cpu", 100))
    names = ("a", "b", "c")
    cluster = Cluster("three", devices, (Channel("all", names, names, 10.0, 0.1),))
    grouped = PlacementProblem(graph, cluster, "none", order="1f1b")
    pins = {int(grouped.op_group[graph.op_names.index("0/layer_0/forward")]): 1}
    return replace(grouped, grouping=grouped.op_group, pins=pins)


@pytest.mark.parametrize("method", PLACERS)
def test_its_placement_is_valid_whole_and_as_it_says(problem, method):
    placement = place(problem, method, TICKS, clock=itertools.count().__next__)
    groups = np.arange(problem.num_groups)
    assert problem.allowed[groups, placement.devices].all()
    by_op = placement.op_devices()
    assert by_op["0/layer_0/forward"] == "b"
    for name, first in zip(problem.graph.op_names, problem.graph.copy_of.tolist(), strict=True):
        assert first < 0 or by_op[name] == by_op[problem.graph.op_names[first]]
    schedule = assert_equals_reference(placement.problem, placement.devices)
    assert placement.problem.order == "1f1b"
    assert placement.step_time == schedule.step_time
    assert placement.peak_memory.tolist() == schedule.peak_memory.tolist()
    assert placement.feasible
