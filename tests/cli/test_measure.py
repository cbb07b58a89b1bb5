import json

import numpy as np
import pytest
from tensorflow.core.protobuf.config_pb2 import RunMetadata

from placeto.measurement import Conduct, Measurement, Runtime
from placeto.placers import place
from tests.measurement.conftest import fitted, saved, split  # noqa: F401 (`saved` is a fixture)
from tests.measurement.traces import op, run_metadata

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def ran():
    """Steps that were measured, and one that was traced, of one op."""
    metadata = RunMetadata.FromString(run_metadata(w0=[op("Relu", 0, (1, 7), 8)]))
    metadata.step_stats.dev_stats[0].device = DEVICE
    return Measurement((1.0, 3.0, 2.0), traces=(metadata.SerializeToString(),))


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
    efforts = pretended(ran())
    result = placeto("measure", *files, "--deadline", "7", "--precision", "0.5")
    assert result.status == 0
    assert "2 s, median of 3 steps" in result.out
    assert "1 s to 3 s" in result.out
    assert "100.0% of pairs of ops in order, tensors: none is sent" in result.out
    assert "warning" not in result.err
    assert (efforts[0].deadline_seconds, efforts[0].precision) == (7.0, 0.5)
    assert (efforts[0].warm_up, efforts[0].steps) == (5, 5)


def test_tensors_that_wait_are_warned_of(placeto, files, pretended, monkeypatch):
    pretended(ran())
    late = Conduct(0.5, np.full(9, 5e-3), 1.0)
    monkeypatch.setattr("placeto.cli.measure.conduct", lambda *step: late)
    result = placeto("measure", *files)
    assert result.status == 0
    assert "50.0% of pairs of ops in order, tensors: wait 5 ms to be sent" in result.out
    assert "warning: tensors that are ready wait 5 ms until they are sent" in result.err
    row = placeto("measure", *files, "--json").document
    assert (row["order"], row["in_order"], row["send_wait"]) == ("fifo", 0.5, 5e-3)


@pytest.mark.parametrize("order", ["fifo", "none"])
def test_the_order_is_the_runtime_s_only_if_asked_for(placeto, files, monkeypatch, order):
    made = []

    def measure(runtime, problem, devices, *arguments, **options):
        made.append(runtime.control(problem, devices))
        return ran()

    monkeypatch.setattr(Runtime, "measure", measure)
    assert placeto("measure", *files, "--order", order).status == 0
    (edges,) = made
    assert (len(edges) > 0) is (order == "fifo")


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
        (("--order", "lifo"), "--order"),
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
