from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import measured_groups
from benchmarks.alternating import digits, row_of
from benchmarks.held import Cost
from placeto import PlacementProblem, load_cluster, load_graph, simulate
from placeto.measurement import Measurement, Runnable, Runtime

PROBLEM = PlacementProblem(load_graph("transformer_small"), load_cluster("local-2"), "none")


def test_what_enters_is_the_fastest_of_what_was_found_with_either_groups(monkeypatch, tmp_path):
    rng = np.random.default_rng(3)
    found = {}

    def place(problem, method, seconds):
        many = rng.integers(2, size=(3, problem.num_groups))
        found[problem.num_groups] = [simulate(problem, each).step_time for each in many]
        return SimpleNamespace(candidates=tuple(many), devices=many[0])

    def measure(runtime, problem, devices, runnable, effort):
        assert len(devices) == PROBLEM.num_groups
        return Measurement((simulate(problem, devices).step_time,) * effort.steps)

    monkeypatch.setattr(measured_groups, "place", place)
    monkeypatch.setattr(Runtime, "measure", measure)
    runnable = Runnable(tmp_path / "none", "0", (), (), "")
    known = {"groups `auto`": "01"}  # of another graph
    with Runtime(PROBLEM.cluster) as runtime:
        runtimes = {"now": runtime, "before": runtime}
        both = measured_groups.enter(measured_groups.QUICK, PROBLEM, runnable, known, runtimes)
        known = {row["label"]: row["devices"] for row in both}
        monkeypatch.setattr(measured_groups, "place", None)  # nothing is searched any more
        again = measured_groups.enter(measured_groups.QUICK, PROBLEM, runnable, known, runtimes)
    assert again == both
    rows = both[::2]
    assert [row["label"] for row in rows] == ["all on 0", "groups `papers`", "groups `auto`"]
    assert [row["devices"] for row in both[1::2]] == [row["devices"] for row in rows]
    assert [row["runtime"] for row in both] == ["now", "before"] * 3
    assert all(row["runs"] == [] for row in both)
    assert set(digits(rows[0]["devices"])) == {0}
    coarse, fine = found.values()
    assert min(found) == 143
    predicted = [
        measured_groups.predictions(PROBLEM, digits(row["devices"]), Cost((0.0, 0.0), (1.0, 0.0)))
        for row in rows
    ]
    simulated = [each["simulated"] for each in predicted]
    assert simulated[1:] == pytest.approx([min(coarse), min(fine)])
    # Where nothing is sent, nothing is held.
    assert predicted[0]["held"] == pytest.approx(simulated[0])
    assert all(each["held"] > each["simulated"] for each in predicted[1:])


def test_the_table_by_hand():
    def ran(label, simulated, before, *now):
        more = {"simulated": simulated, "held": simulated + 0.5}
        rows = row_of(label, [0], "before"), row_of(label, [0], "now")
        runs = [{"samples": before}], [{"samples": samples} for samples in now]
        return [row | more | {"runs": each} for row, each in zip(rows, runs, strict=True)]

    rows = [
        *ran("all on 0", 4.0, [5.0], [4.0, 5.0]),
        *ran("groups `papers`", 2.0, [6.0], [3.0], [3.0]),
        *ran("groups `auto`", 1.0, [4.0], [2.0, 2.4], [2.5, 2.5]),
    ]
    before = (
        "5000 | 5000 to 5000 | 1.00",
        "6000 | 6000 to 6000 | 1.20",
        "4000 | 4000 to 4000 | 0.80",
    )
    now = "4500 | 4500 to 4500 | 1.00", "3000 | 3000 to 3000 | 0.67", "2450 | 2200 to 2500 | 0.54"
    simulated = [
        "| `net` | all on 0 | 4000 | 4500 | 1.00 | ",
        "| `net` | groups `papers` | 2000 | 2500 | 0.50 | ",
        "| `net` | groups `auto` | 1000 | 1500 | 0.25 | ",
    ]
    lines = measured_groups.markdown({"net": {"rows": rows}}).splitlines()[2:]
    for line, *parts in zip(lines, simulated, before, now, strict=True):
        assert line == "{}{} | {} |".format(*parts)
    # What was not run by now has dashes.
    lines = measured_groups.markdown({"net": {"rows": rows[::2]}}).splitlines()[2:]
    assert lines[1] == f"{simulated[1]}{before[1]} | - | - | - |"
