import json

import pytest

from placeto.measurement import Measurement, Runtime
from placeto.placers import place
from tests.measurement.conftest import fitted, saved, split  # noqa: F401 (`saved` is a fixture)

RAN = Measurement((1.0, 3.0, 2.0))


@pytest.fixture
def files(saved, folder):  # noqa: F811
    """Arguments that name a step, a cluster of one process, and a placement of the one on it."""
    from placeto import PlacementProblem, load_cluster, save_cluster

    cluster = fitted(load_cluster("local-cpu"))
    save_cluster(cluster, folder / "one.yaml")
    step = saved("two_layers")
    place(PlacementProblem(step.graph, cluster), "single").save(folder / "p.json")
    return (str(step.path), "--cluster", "one.yaml", "--placement", "p.json")


@pytest.fixture
def pretended(monkeypatch):
    """Makes every measurement end in a given way; returns the efforts that were asked for."""
    efforts = []

    def pretend(measurement):
        def measure(runtime, problem, devices, runnable, effort, *, traces=0):
            efforts.append(effort)
            return measurement

        monkeypatch.setattr(Runtime, "measure", measure)
        return efforts

    return pretend


def test_a_real_run(placeto, files):
    result = placeto("measure", *files, "--steps", "3", "--warm-up", "1", "--json")
    assert result.status == 0
    row = result.document
    assert row["feasible"] is True
    assert row["reason"] == ""
    assert len(row["samples"]) == 3
    assert min(row["samples"]) <= row["step_time"] <= max(row["samples"])
    assert row["simulated_step_time"] > 0


def test_what_is_printed(placeto, files, pretended):
    efforts = pretended(RAN)
    result = placeto("measure", *files, "--deadline", "7", "--precision", "0.5")
    assert result.status == 0
    assert "2 s, median of 3 steps" in result.out
    assert "1 s to 3 s" in result.out
    assert (efforts[0].deadline_seconds, efforts[0].precision) == (7.0, 0.5)
    assert (efforts[0].warm_up, efforts[0].steps) == (5, 5)


def test_a_placement_that_cannot_be_run_is_status_1(placeto, files, pretended):
    pretended(Measurement(reason="worker 1 was killed"))
    result = placeto("measure", *files, "--json")
    assert result.status == 1
    assert result.document["feasible"] is False
    assert result.document["reason"] == "worker 1 was killed"
    assert result.document["step_time"] is None
    assert "placeto: it cannot be run: worker 1 was killed\n" in result.err
    text = placeto("measure", *files)
    assert (text.status, text.out) == (1, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--steps", "0"), "steps is 0, expected a number from 1"),
        (("--deadline", "-1"), "deadline_seconds is -1.0"),
        (("--cluster", "k80x2"), "p.json: op_devices: cluster 'k80x2': there is no device 'cpu0'"),
        (("--placement", "q.json"), "q.json: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_status_2(placeto, files, change, message):
    assert message in placeto("measure", *files, *change).complaint


def test_a_graph_that_was_not_extracted(placeto, folder):
    # The fork was made by hand; its ops have no TensorFlow graph behind them.
    devices = dict.fromkeys("abcd", "d0")
    header = {"format": "placeto.placement", "version": 1}
    (folder / "p.json").write_text(json.dumps(header | {"op_devices": devices}))
    duo = (folder / "duo.yaml").read_text().replace("kind: k", "tensorflow: X\n  kind: k")
    for number in range(2):
        duo = duo.replace("tensorflow: X", f"tensorflow: /device:CPU:{number}", 1)
    (folder / "duo.yaml").write_text(duo)
    result = placeto("measure", "fork.json", "--cluster", "duo.yaml", "--placement", "p.json")
    assert result.status == 2
    assert "cannot be run: its file does not say which GraphDef it is of" in result.err
