"""The study of kernels: which are told apart, and the page."""

import numpy as np
import pytest

from benchmarks.kernels import KINDS, covered, joined, kinds, markdown, totals
from benchmarks.output import RESULTS
from placeto.measurement.trace import OpRun, Received, Trace
from placeto.support.files import read_json

# Device 0 computes from 0 to 3 s, and receives from 2 to 3 s; device 1 computes from 0 to 1 s.
TRACE = Trace(
    [
        OpRun("a", "Op", 0, 0.0, 1.0, 0.9),
        OpRun("x", "Op", 1, 0.0, 1.0, 1.0),
        OpRun("b", "Op", 0, 1.0, 2.0, 1.0),
        OpRun("c", "Op", 0, 2.0, 3.0, 0.5),
        OpRun("added", "Op", 0, 2.0, 3.0, 9.0),
    ],
    [Received("x", 1, 0, 8, 2.0, 3.0)],
)


def test_spans_are_joined():
    assert joined([(2.0, 3.0), (0.0, 1.0), (0.5, 1.5), (1.5, 1.6)]) == [(0.0, 1.6), (2.0, 3.0)]
    assert covered([(0.0, 1.0), (2.0, 3.0)], 0.5, 2.5) == pytest.approx(0.5)


def test_kernels_are_told_apart():
    found = {run.op: KINDS[kind] for run, kind in kinds(TRACE)}
    assert found == {
        "a": "both compute",
        "x": "both compute",
        "b": "it alone computes",
        "c": "alone, and likewise",
        "added": "alone, and likewise",
    }


def test_they_are_set_beside_those_of_whole_steps():
    numbers = {"a": 0, "b": 1, "c": 2, "x": 3}
    whole = np.array([[1.0, 0.5, 1e-6, np.nan], [np.nan, np.nan, np.nan, 2.0]])
    # c is too short to be looked at, and what the runtime added is of no graph.
    expected = [[1.9, 3.0], [1.0, 0.5], [0.0, 0.0], [0.0, 0.0]]
    for found, wanted in zip(totals([TRACE], whole, numbers), expected, strict=True):
        assert found == pytest.approx(wanted)


def test_the_page_is_of_the_results():
    document = read_json(RESULTS / "kernels.json")
    assert (RESULTS / "kernels.md").read_text() == markdown(document["steps"])
