"""Costs corrected by what was run, by hand and against true ones."""

from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, load_graph, step_times
from placeto.measurement.trace import read_trace
from placeto.measurement.trials.correction import Observed, correct, kernel_seconds, op_factors
from tests.builders import make_cluster, make_graph, make_problem
from tests.measurement.trials.pretended import Pretended


def test_factors_are_shrunk_towards_the_type_and_the_type_towards_all():
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0})
    object.__setattr__(graph, "op_types", ("M", "M", "R", "R"))
    problem = make_problem(graph, make_cluster(2))
    # a four times as long in two traces, c as believed in one; b and d were not seen.
    kernels = np.array([[4.0, np.nan, 1.0, np.nan], [4.0, np.nan, np.nan, np.nan]])
    found = op_factors(problem, [Observed(np.zeros(4, int), 5.0, kernels)])["k"]
    four = np.log((4 + 1e-6) / (1 + 1e-6))
    whole = (four + 0) / 2
    m, r = (four + 2 * whole) / 3, (0 + 2 * whole) / 3
    expected = [(2 * four + 2 * m) / 4, m, (0 + 2 * r) / 3, r]
    assert np.log(found) == pytest.approx(expected)


def test_kernels_of_a_device_alone_are_compared_with_its_op_times_alone():
    graph = make_graph({"a": 1.0, "b": 1.0})
    graph = replace(graph, meta={"costs": {"kinds": {"k": {"alone": 0.8}}}})
    problem = make_problem(graph, make_cluster(2))
    for devices, expected in (([0, 0], 1.0), ([0, 1], 0.8)):
        runs = [Observed(np.array(devices), 1.6, np.array([[0.8, 0.8]]))]
        assert op_factors(problem, runs)["k"] == pytest.approx([expected, expected], rel=1e-5)


def test_a_kind_that_was_not_observed_keeps_its_op_times():
    problem = make_problem(make_graph({"a": 1.0, "b": 2.0}), make_cluster(1))
    nothing = Observed(np.zeros(2, int), 3.0, np.empty((0, 2)))
    assert op_factors(problem, [nothing])["k"].tolist() == [1.0, 1.0]


def test_step_times_alone_correct_what_all_costs_have_in_common():
    """Both ops on one device take 4 s; apart, 2 s, 1 byte at 1 byte/s, and 2 s: 5 s."""
    graph = make_graph({"a": 2.0, "b": 2.0}, [("a", 1, ["b"])])
    problem = make_problem(graph, make_cluster(2))
    placements = np.array([[0, 0], [0, 1]])
    nothing = np.empty((0, 2))
    runs = [
        Observed(devices, time, nothing) for devices, time in zip(placements, (8, 11), strict=True)
    ]
    corrected = correct(problem, runs)
    assert step_times(corrected.problem, placements) == pytest.approx([8, 11], rel=0.03)
    assert corrected.ops == pytest.approx(2, rel=0.03)
    assert corrected.sizes > 1.5


def test_one_disturbed_run_does_not_bend_it():
    graph = make_graph({"a": 1.0, "b": 2.0, "c": 3.0})
    problem = make_problem(graph, make_cluster(2))
    placements = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]])
    times = step_times(problem, placements) * [1, 1, 1, 1, 1.5]
    nothing = np.empty((0, 3))
    runs = [Observed(*each, nothing) for each in zip(placements, times, strict=True)]
    assert correct(problem, runs).ops == pytest.approx(1, rel=0.02)


def test_corrected_costs_predict_placements_that_were_not_run():
    problem = PlacementProblem(load_graph("rnnlm"), load_cluster("local-2"), 40)
    workers = Pretended(problem, 3, disturbed=0, drift=0)
    rng = np.random.default_rng(0)
    many = rng.integers(0, 2, (12, 40))
    names = [str(device) for device in problem.cluster.tensorflow_devices()]
    observed = []
    for devices in many[:6]:
        (run,) = workers.compare(problem, devices[None], None, traces=1)
        kernels = kernel_seconds(problem, devices, read_trace(run.traces[0], names))
        observed.append(Observed(devices, run.step_time, kernels[None]))
    true = step_times(workers.true, many[6:])
    before = np.abs(step_times(problem, many[6:]) / true - 1).max()
    corrected = correct(problem, observed).problem
    after = np.abs(step_times(corrected, many[6:]) / true - 1).max()
    assert after < 0.05 < before
    assert corrected.op_group.tolist() == problem.op_group.tolist()
