"""What runs say of a placement, and when two placements are the same."""

import numpy as np
import pytest

from placeto.measurement import Measurement
from placeto.placers.measured.candidate import Candidate, differ, noise
from tests.builders import make_cluster, make_graph, make_problem


def candidate(*runs, reason=""):
    found = Candidate(np.zeros(1, int), "by hand", 1.0, reason=reason)
    found.runs = [Measurement(run) for run in runs]
    return found


def test_a_run_that_was_disturbed_does_not_count():
    assert candidate((1.4, 1.4, 1.4), (1.0, 1.0, 1.3)).low == 1.0
    assert candidate((1.0, 1.0, 1.0, 1.0, 0.1)).low == 1.0
    assert candidate((1.0,), reason="gone").low == np.inf


def test_runs_on_slow_cores_count_only_where_there_are_no_others():
    found = Candidate(np.zeros(1, int), "by hand", 1.0)
    found.runs = [Measurement((1.5,), paces=(1.4,)), Measurement((1.4,), paces=(1.3,))]
    found.kernels = [[np.array([3.0])], [np.array([4.0])]]
    assert found.low == 1.4
    assert [seconds.tolist() for seconds in found.observed] == [[3.0], [4.0]]
    found.runs.append(Measurement((1.6,), paces=(1.1,)))
    found.kernels.append([np.array([5.0])])
    assert found.low == 1.6
    assert [seconds.tolist() for seconds in found.observed] == [[5.0]]


def test_noise_is_that_of_runs_that_little_disturbed():
    quiet, slowed = candidate((1.0,), (1.02,)), candidate((1.0,), (1.4,))
    assert noise([quiet, slowed, slowed]) == 0.05
    assert noise([quiet, quiet, slowed]) == pytest.approx(0.02)
    assert noise([candidate((1.0, 1.0, 1.0, 1.01, 1.01, 1.01))]) == pytest.approx(0.005)
    assert noise([]) == 0.005


def test_devices_of_a_kind_are_taken_for_each_other():
    graph = make_graph({"a": 1.0, "b": 0.01, "c": 1.0})
    problem = make_problem(graph, make_cluster(2))
    one = np.array([0, 0, 1])
    assert not differ(problem, np.array([0, 1, 1]), [one])  # half a percent of the work
    assert not differ(problem, np.array([1, 1, 0]), [one])
    assert differ(problem, np.array([0, 0, 0]), [one])
    assert not differ(problem, np.array([0, 0, 0]), [one, np.array([1, 1, 1])])
