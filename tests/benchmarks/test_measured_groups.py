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
    with Runtime(PROBLEM.cluster) as runtime:
        rows = measured_groups.enter(measured_groups.QUICK, PROBLEM, runnable, runtime)
    assert [row["label"] for row in rows] == ["all on 0", "groups `auto`", "groups `fine`"]
    assert all(row["runs"] == [] for row in rows)
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
    rows = [
        row_of("all on 0", [0])
        | {"simulated": 4.0, "held": 4.5, "runs": [{"samples": [4.0, 5.0]}]},
        row_of("groups `auto`", [0])
        | {"simulated": 2.0, "held": 2.5, "runs": [{"samples": [3.0]}] * 2},
        row_of("groups `fine`", [1])
        | {
            "simulated": 1.0,
            "held": 1.5,
            "runs": [{"samples": [2.0, 2.4]}, {"samples": [2.5, 2.5]}],
        },
    ]
    lines = measured_groups.markdown({"net": {"rows": rows}}).splitlines()[2:]
    assert lines == [
        "| `net` | all on 0 | 4000 | 4500 | 4500 | 4500 to 4500 | 2.00 | 1.50 |",
        "| `net` | groups `auto` | 2000 | 2500 | 3000 | 3000 to 3000 | 1.00 | 1.00 |",
        "| `net` | groups `fine` | 1000 | 1500 | 2450 | 2200 to 2500 | 0.50 | 0.82 |",
    ]
