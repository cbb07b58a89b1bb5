import numpy as np
import pytest

from benchmarks import measuring
from benchmarks.measuring import Case, alternate, measured, row_of
from benchmarks.processes import busy_seconds, processor_seconds
from placeto.measurement import Effort, Measurement
from tests.builders import make_cluster, make_graph, make_problem

PROBLEM = make_problem(make_graph({"a": 1, "b": 1}, []), make_cluster(2))
EFFORT = Effort(0, 2)


class Pretended:
    """A runtime whose runs end as told, and a machine whose clocks are told."""

    def __init__(self, monkeypatch, reasons=(), foreign=(), paces=()):
        self.process_ids = {}
        self.seen, self.batches = [], []
        self.reasons = dict(reasons)
        self.now, self.busy, self.own = 100.0, 50.0, 20.0
        self.foreign, self.paces = list(foreign), list(paces)
        monkeypatch.setattr(measuring, "monotonic", lambda: self.now)
        monkeypatch.setattr(measuring, "busy_seconds", lambda: self.busy)
        monkeypatch.setattr(measuring, "processor_seconds", lambda process: self.own)

    def compare(self, problem, many, runnable, effort):
        *beside, devices = map(tuple, many.tolist())
        self.seen.append(devices)
        self.batches.append(beside)
        self.now += 10.0
        self.own += 12.0
        self.busy += 12.0 + 10.0 * (self.foreign.pop(0) if self.foreign else 0.0)
        if reason := self.reasons.get(devices):
            return [Measurement(reason=reason)] * len(many)
        pace = self.paces.pop(0) if self.paces else 1.0
        measured = Measurement((float(len(self.seen)), 8.0), paces=(pace, pace))
        return [*(Measurement((1.0 + sum(each), 2.0)) for each in beside), measured]


def test_there_and_back(monkeypatch):
    runtime = Pretended(monkeypatch)
    rows = [row_of("a", [0, 1]), row_of("b", np.array([1, 0]), family="x")]
    assert rows[1] == {
        "label": "b", "runtime": "now", "family": "x", "devices": "10", "runs": [], "tries": 0,
        "reason": "",
    }  # fmt: skip
    after = [each["label"] for each in run(runtime, rows, 3)]
    assert after == ["a", "b", "b", "a", "a", "b"]
    assert runtime.seen == [(0, 1), (1, 0), (1, 0), (0, 1), (0, 1), (1, 0)]
    assert [each["samples"] for each in rows[0]["runs"]] == [[1.0, 8.0], [4.0, 8.0], [5.0, 8.0]]
    assert measured(rows[0]) == 6.5  # the median of 1 4 5 8 8 8
    assert [each["foreign"] for each in rows[0]["runs"]] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("foreign", "paces", "tries", "kept"),
    [
        ([0.04], [], 1, [1]),
        ([0.5, 0.01], [], 2, [2]),
        ([0.2, 0.5], [], 2, [1]),
        ([], [1.19], 1, [1]),
        ([], [1.4, 1.3], 2, [2]),
        ([0.2], [1.0, 1.3], 2, [2]),
    ],
)
def test_a_run_that_others_disturb_is_made_again(monkeypatch, foreign, paces, tries, kept):
    runtime = Pretended(monkeypatch, foreign=foreign, paces=paces)
    rows = [row_of("a", [0, 1])]
    list(run(runtime, rows, 1))
    assert len(runtime.seen) == rows[0]["tries"] == tries
    assert [each["samples"][0] for each in rows[0]["runs"]] == kept


def test_only_what_was_disturbed_is_run_again(monkeypatch):
    runtime = Pretended(monkeypatch, paces=[1.0, 1.5, 1.0, 1.0, 1.5, 1.0])
    rows = [row_of("a", [0, 1]), row_of("b", [1, 0])]
    assert [each["label"] for each in run(runtime, rows, 2)] == ["a", "b", "b", "a", "b", "b"]
    assert [each["samples"][0] for each in rows[1]["runs"]] == [3.0, 6.0]


def test_what_takes_turns_with_it_is_kept(monkeypatch):
    runtime = Pretended(monkeypatch)
    rows = [row_of("a", [0, 1])]
    beside = (np.array([0, 0]), np.array([1, 1]))
    list(alternate(Case(PROBLEM, None, EFFORT, {"now": runtime}, beside), rows, 1))
    (only,) = rows[0]["runs"]
    assert only["samples"] == [1.0, 8.0]
    assert only["beside"] == [[1.0, 2.0], [3.0, 2.0]]


def test_several_take_turns_with_each_other_unless_one_of_them_cannot_run(monkeypatch):
    rows = [
        row_of(label, devices) for label, devices in (("a", [0, 1]), ("b", [1, 0]), ("c", [1, 1]))
    ]
    single = (0, 0)
    for reasons in ({}, {(1, 0): "no memory"}):
        runtime = Pretended(monkeypatch, reasons)
        fresh = [dict(row, runs=[]) for row in rows]
        case = Case(PROBLEM, None, EFFORT, {"now": runtime}, (np.array(single),), 2)
        list(alternate(case, fresh, 1))
        alone = [((0, 1), [single]), ((1, 0), [single])] if reasons else []
        assert list(zip(runtime.seen, runtime.batches, strict=True)) == [
            ((1, 0), [single, (0, 1)]), *alone, ((1, 1), [single]),
        ]  # fmt: skip
        assert [row["reason"] for row in fresh] == ["", *([*reasons.values()] or [""]), ""]
        assert [len(row["runs"]) for row in fresh] == [1, 0 if reasons else 1, 1]
        (first,) = fresh[0]["runs"]
        assert first["beside"] == [[1.0, 2.0]]
        # Of the pretended, what takes turns with another takes 1 s and a second for each 1.
        assert first["samples"] == ([2.0, 8.0] if reasons else [2.0, 2.0])


def test_processor_time_is_counted():
    before, all_before = processor_seconds(), busy_seconds()
    while processor_seconds() < before + 0.1:
        pass
    # The kernel counts in hundredths, and apart for a process and for all.
    assert busy_seconds() - all_before >= 0.1 - 0.03


def run(runtime, rows, rounds):
    return alternate(Case(PROBLEM, None, EFFORT, {"now": runtime}), rows, rounds)
