"""What runs say of a placement, and when two placements are the same."""

import numpy as np
import pytest

from placeto.measurement import Measurement
from placeto.measurement.trials.bench import Bench
from placeto.measurement.trials.candidate import Candidate, differ, noise
from tests.builders import make_cluster, make_graph, make_problem


def candidate(*runs, reason=""):
    found = Candidate(np.zeros(1, int), "by hand", 1.0, reason=reason)
    found.turns = [np.array(turns) for turns in runs]
    found.runs = [Measurement(turns) for turns in runs]
    return found


def test_the_median_of_all_turns_counts():
    assert candidate((0.8, 0.9, 2.0), (0.8, 0.7)).ratio == 0.8
    assert candidate((1.0,), reason="gone").ratio == np.inf
    assert candidate().ratio == np.inf


def test_noise_is_how_far_two_runs_are_apart():
    quiet, slowed = candidate((1.0,), (1.02,)), candidate((1.0,), (1.4,))
    assert noise([quiet, slowed, slowed]) == 0.05
    assert noise([quiet, quiet, slowed]) == pytest.approx(0.02)
    # Of one run: 1.86 median distances of 1%, over the root of 4 turns.
    assert noise([candidate((0.99, 0.99, 1.01, 1.01))]) == pytest.approx(0.0093)
    assert noise([]) == 0.005


def test_kernels_are_those_of_the_machine_at_its_fastest():
    """The reference took 2 s alone and 3 s beside the other, whose ops are as much slower."""
    problem = make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(2))
    first, other = candidate((1.0,)), candidate((0.8,))
    first.beside, first.kernels = [2.0], [[np.array([1.0, 1.0])]]
    other.beside, other.kernels = [3.0], [[np.array([1.5, 1.2])]]
    bench = Bench(problem, None, None, None, 9, np.inf, None, candidates=[first, other])
    of_first, of_other = bench.observed()
    assert (of_first.step_time, of_other.step_time) == (2.0, 1.6)
    assert of_other.kernels.tolist() == [pytest.approx([1.0, 0.8])]


def test_devices_of_a_kind_are_taken_for_each_other():
    graph = make_graph({"a": 1.0, "b": 0.01, "c": 1.0})
    problem = make_problem(graph, make_cluster(2))
    one = np.array([0, 0, 1])
    assert not differ(problem, np.array([0, 1, 1]), [one])  # half a percent of the work
    assert not differ(problem, np.array([1, 1, 0]), [one])
    assert differ(problem, np.array([0, 0, 0]), [one])
    assert not differ(problem, np.array([0, 0, 0]), [one, np.array([1, 1, 1])])
