from dataclasses import replace
from functools import partial

from benchmarks import win
from benchmarks.alternating import contest, digits, row_of
from placeto.measurement import Measurement, Runnable, Runtime
from placeto.support.files import read_json
from tests.builders import make_cluster, make_graph, make_problem

# Two chains without edges between them: apart they take 2 s, together 4 s.
TWO = make_cluster(2)
PROBLEM = make_problem(
    make_graph({"a": 1, "b": 1, "c": 1, "d": 1}, [("a", 1, ["b"]), ("c", 1, ["d"])]),
    replace(
        TWO,
        devices=tuple(
            replace(device, tensorflow=f"/device:CPU:{number}")
            for number, device in enumerate(TWO.devices)
        ),
    ),
)
# The worst comes first, the best is in the middle.
PLAN = replace(win.QUICK, methods={"single": 1.0, "heft": 1.0, "random": 1.0}, candidates=1)


def ran(label: str, *rounds: list[float], **more: str) -> dict:
    return row_of(label, [0], **more) | {"runs": [{"samples": samples} for samples in rounds]}


def test_the_table_by_hand():
    rows = [
        ran("all on 0", [4.0, 5.0], [6.0, 4.0]),
        ran("expert", [3.0, 2.0], [2.0, 1.0]),
        row_of("all on 1", [1]) | {"reason": "worker 1 was killed"},
        ran("found", [1.0, 1.0], [1.5, 2.5], method="heft"),
    ]
    lines = win.markdown({"net": {"rows": rows}}).splitlines()[2:]
    assert lines == [
        "| `net` | all on 0 | 4500 | 4500 to 5000 | 2.25 |",
        "| `net` | expert | 2000 | 1500 to 2500 | 1.00 |",
        "| `net` | found (heft) | 1250 | 1000 to 2000 | 0.62 |",
    ]


def test_the_contest(monkeypatch, tmp_path):
    steps = []

    def measure(runtime, problem, devices, runnable, effort):
        steps.append(devices.tolist())
        return Measurement((float(max(devices.sum(), 4 - devices.sum())),) * effort.steps)

    monkeypatch.setattr(Runtime, "measure", measure)
    kept = tmp_path / "net.win.json"
    runnable = Runnable(tmp_path / "none", "0", (), (), "")
    entered = partial(win.enter, PLAN, PROBLEM, runnable)
    rows = contest(PROBLEM, runnable, PLAN.alternation, kept, entered)
    found = rows[-1]
    assert (found["label"], found["method"]) == ("found", "heft")
    assert sorted(digits(found["devices"]).tolist()) == [0, 0, 1, 1]
    assert [row["label"] for row in rows[:2]] == ["all on 0", "all on 1"]
    # The run by which it was chosen does not count.
    assert {len(row["runs"]) for row in rows} == {PLAN.alternation.rounds}
    assert read_json(kept)["rows"] == rows
    steps.clear()
    assert contest(PROBLEM, runnable, PLAN.alternation, kept, entered) == rows
    assert steps == []
