"""How busy placements keep resources, by hand, by a plain reference, and by the simulator."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given

from placeto import PlacementProblem, simulate
from placeto.simulation.loads import resident_bytes, resource_loads, throughputs
from tests.builders import make_cluster, make_graph, make_problem
from tests.reference_loads import reference_loads
from tests.strategies import clusters_of_links, examples, placed

# A tensor of 4 bytes for both, and a control dependency for one.
READ_TWICE = make_graph({"a": 1, "b": 2, "c": 0}, [("a", 4, ["b", "c"]), ("a", 0, ["c"])])
FIGURES = {"bandwidth": 2.0, "latency": 9.0, "overhead": 0.25, "launch_overhead": 0.5}


@pytest.mark.parametrize(("multicast", "carried"), [(False, 4.75), (True, 2.5)])
def test_by_hand(multicast, carried):
    problem = make_problem(READ_TWICE, make_cluster(3, multicast=multicast, **FIGURES))
    (loads,) = resource_loads(problem, [[0, 1, 2]])
    assert loads.tolist() == [1.5, 2.5, 0.0, carried, 0.0, 0.0]
    # On one device both read the same copy.
    (loads,) = resource_loads(problem, [[0, 1, 1]])
    assert loads.tolist() == [1.5, 2.5, 0.0, 2.5, 0.0, 0.0]


def test_of_a_step_of_two_microbatches_it_is_half():
    """Forward twice, and an update: (2 + 2 + 1) / 2; the update's output counts in full."""
    graph = make_graph(
        {"f0": 2, "f1": 2, "u": 1},
        [("f0", 8, ["u"]), ("f1", 8, ["u"]), ("u", 1, [])],
        param_bytes={"f0": 100},
    )
    columns = {"microbatch": [0, 1, -1], "copy_of": [-1, 0, -1], "phase": [0, 0, 2]}
    graph = replace(graph, **{key: np.array(each) for key, each in columns.items()})
    problem = PlacementProblem(graph, make_cluster(2), np.array([0, 0, 1]))
    together, apart = throughputs(problem, [[0, 0], [0, 1]]).step_time
    assert together == 2.5
    assert apart == 8.0  # two tensors of 8 s each
    assert resident_bytes(problem).tolist() == [108, 1]
    assert throughputs(problem, [[0, 1]]).peak_memory.tolist() == [[108, 1]]


def test_what_does_not_fit_or_cannot_run_is_not_feasible():
    problem = make_problem(READ_TWICE, make_cluster(2, memory=3))
    assert throughputs(problem, [[0, 0, 0]]).feasible.tolist() == [False]
    nowhere = replace(READ_TWICE, op_seconds={"k": np.array([1.0, 2, 0]), "x": np.full(3, np.inf)})
    cluster = make_cluster(2)
    devices = cluster.devices[0], replace(cluster.devices[1], kind="x")
    problem = make_problem(nowhere, replace(cluster, devices=devices))
    outcomes = throughputs(problem, [[0, 0, 0], [0, 1, 0]])
    assert outcomes.step_time.tolist() == [3.0, np.inf]
    assert outcomes.feasible.tolist() == [True, False]


def names(problem):
    cluster = problem.cluster
    kinds = ("device", cluster.devices), ("channel", cluster.channels), ("link", cluster.links)
    return [(kind, each.name) for kind, some in kinds for each in some]


@examples(100)
@given(placed(made=clusters_of_links) | placed())
def test_against_the_reference(case):
    problem, devices = case
    expected = reference_loads(problem, devices)
    (loads,) = resource_loads(problem, [devices])
    assert loads == pytest.approx([expected.get(name, 0.0) for name in names(problem)])


@examples(100)
@given(placed(made=clusters_of_links) | placed())
def test_a_simulated_step_keeps_resources_as_long(case):
    problem, devices = case
    cluster, schedule = problem.cluster, simulate(problem, devices)
    assume(np.isfinite(schedule.step_time))
    num_devices, num_channels = cluster.num_devices, len(cluster.channels)
    (loads,) = resource_loads(problem, [devices])
    op_devices = np.array(devices)[problem.op_group]
    seconds = problem.seconds_of(np.array(devices))
    held = seconds + np.where(seconds > 0, problem.arrays.launch_overhead[op_devices], 0.0)
    kept = np.bincount(op_devices, held, minlength=len(loads))
    parts = schedule.transfers.parts
    channel = schedule.transfers.channel[parts.transfer]
    alone_on_it = (parts.device < 0) & (parts.link < 0)
    resource = np.select(
        [parts.device >= 0, parts.link >= 0],
        [parts.device, num_devices + num_channels + parts.link],
        num_devices + channel,
    )
    rest = np.where(alone_on_it, problem.arrays.overhead[channel], 0.0)
    np.add.at(kept, resource, parts.finish - parts.start + rest)
    assert loads == pytest.approx(kept, rel=1e-6, abs=1e-9)
