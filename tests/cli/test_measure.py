from dataclasses import replace

import pytest
from tensorflow.core.protobuf.config_pb2 import RunMetadata

from placeto.measurement import Measurement, Runtime
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


@pytest.mark.parametrize(("pace", "warned"), [(1.1, False), (1.4, True)])
def test_a_core_that_stayed_slow_is_told(placeto, files, pretended, pace, warned):
    pretended(replace(ran(), paces=(1.0, pace, pace)))
    result = placeto("measure", *files, "--json")
    assert (result.status, result.document["pace"]) == (0, pace)
    assert ("a core was 1.4 times slower than at other times" in result.err) == warned


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
