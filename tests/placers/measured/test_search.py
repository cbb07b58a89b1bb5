"""Which of what was found is worth a run."""

from types import SimpleNamespace

import numpy as np
import pytest

from placeto import PlacementProblem
from placeto.measurement import Measurement
from placeto.measurement.trials.candidate import Candidate
from placeto.placers.measured.search import _gain, worth_running
from tests.builders import make_cluster, make_graph

SECONDS = {"a": 8.0, "b": 8.0, "c": 7.0, "d": 1.0}


def candidate(devices, ratio=None):
    found = Candidate(np.array(devices), "by hand", 1.0)
    if ratio is not None:
        found.runs.append(Measurement((ratio,)))
        found.turns.append(np.array([ratio]))
    return found


def picked(found, ran, first=False):
    """Of what was found, what is run after what ran: the single device first."""
    problem = PlacementProblem(make_graph(SECONDS), make_cluster(2), "none")
    best = min(ran, key=lambda each: each.ratio)
    bench = SimpleNamespace(problem=problem, candidates=ran, best=best, reference=ran[0])
    chosen = worth_running(SimpleNamespace(found=found), bench, problem, first=first)
    return [each.devices.tolist() for each in chosen]


def test_the_expected_gain_by_hand():
    # Of a normal variable of mean 0 the part above 0 has its spread over the root of two pi.
    assert _gain(np.array([1.0]), 0.1) == pytest.approx(0.1 / np.sqrt(2 * np.pi))
    assert _gain(np.array([0.8]), 0.0) == pytest.approx(-np.log(0.8))
    assert _gain(np.array([1.25]), 0.0) == pytest.approx(0.0)
    assert _gain(np.array([1.1]), 0.1) > _gain(np.array([1.1]), 0.05) > 0


def test_one_that_is_predicted_to_be_as_fast_is_run_and_a_slow_one_is_not():
    single, ran = candidate([0, 0, 0, 0], 1.0), candidate([0, 1, 0, 1], 0.625)
    as_fast, slow = candidate([0, 1, 1, 0], None), candidate([0, 0, 0, 1], None)
    # 15, 15 and 23 s: it may be faster by as much as predictions are off before any are known.
    assert picked([as_fast, slow], [single, ran]) == [[0, 1, 1, 0]]
    assert picked([slow], [single, ran]) == []
    assert picked([slow], [single, ran], first=True) == [[0, 0, 0, 1]]


def test_where_predictions_were_far_off_a_slower_one_is_run():
    single = candidate([0, 0, 0, 0], 1.0)
    off = [
        candidate([0, 1, 0, 1], 0.625),
        candidate([1, 0, 0, 0], 1.6),
        candidate([0, 1, 1, 1], 0.4),
    ]
    slower = candidate([0, 0, 1, 1], None)
    assert picked([slower], [single, *off]) == [[0, 0, 1, 1]]
