from importlib import import_module

import numpy as np
import pytest

from placeto import load_cluster, load_graph, save_cluster, save_graph, simulate
from placeto.measurement import Effort, find_runnable
from tests.measurement.conftest import fitted, saved, split  # noqa: F401 (`saved` is a fixture)


@pytest.fixture
def files(saved, folder):  # noqa: F811
    """Arguments that name two workers and a step."""
    save_cluster(fitted(load_cluster("local-2")), folder / "two.yaml")
    return ("--cluster", "two.yaml", "--graph", str(saved("two_layers").path))


@pytest.fixture
def hasty(monkeypatch):
    """Less of everything, and no waiting for calm cores: the figures are not what is tested."""
    folder = "placeto.measurement.calibration"
    for name, key, steps in (("calibrate", "_EXCHANGE_EFFORT", 10), ("ends", "_EFFORT", 15)):
        effort = Effort(1, steps, patience_seconds=0.0)
        monkeypatch.setattr(import_module(f"{folder}.{name}"), key, effort)
    shapes = ((1, 4), (4, 4), (1, 2**20), (4, 2**20), (1, 2**24))
    monkeypatch.setattr(import_module(f"{folder}.calibrate"), "EXCHANGES", shapes)
    monkeypatch.setattr(import_module(f"{folder}.ends"), "_PASSES", 1)
    monkeypatch.setattr("placeto.cli.calibrate.PATIENCE_SECONDS", 0.0)


@pytest.mark.usefixtures("hasty")
def test_real_workers_end_to_end(placeto, files, folder):
    result = placeto("calibrate", *files, "-o", "out", "--steps", "3", "--traces", "2", "--json")
    assert result.status == 0
    row = result.document
    assert row["files"] == ["out/local-2-calibrated.yaml", "out/two_layers.json.gz"]
    cluster, graph = load_cluster(row["files"][0]), load_graph(row["files"][1])
    assert [device.kind for device in cluster.devices] == ["local-2-cpu"] * 2
    seconds = graph.op_seconds["local-2-cpu"]
    assert (seconds >= 0).all()
    # A product of matrices is computed; the kernels are a part of the step.
    assert seconds[graph.op_names.index("MatMul")] > 0
    for check in row["graphs"]:
        assert seconds.sum() < 10 * check["measured"]
    for fit in row["channels"]:
        assert 1e6 < fit["bandwidth"] <= 1e13  # over the loopback interface
        # Beside other tests one of both may be lost in noise.
        for piece, size in ((0, 4), (-1, 2**24)):
            costs = [fit[end][piece] for end in ("send", "receive")]
            both = sum(cost["seconds"] + size * cost["seconds_per_byte"] for cost in costs)
            assert 1e-6 < both < 1.0
    # Its GraphDef is beside it.
    assert find_runnable(graph).path == folder / "out" / "two_layers.graphdef.gz"
    problem, devices = split(graph, cluster)
    assert seconds.max() < simulate(problem, devices).step_time < np.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--traces", "0"), "traces is 0, expected a number from 1"),
        (("--steps", "0"), "steps is 0, expected a number from 1"),
        (("--cluster", "duo.yaml"), "device 'd0': tensorflow is missing"),
        (("--graph", "nothing"), "nothing: no such file, and no bundled name"),
        (("--graph", "fork.json"), "cannot be run: its file does not say which GraphDef it is of"),
        (("-o", "fork.json"), "fork.json: cannot be written: not a folder"),
        (("-o", "no/such/folder"), "no/such/folder: cannot be written: No such file"),
    ],
)
def test_bad_input_is_one_line_and_status_2(placeto, files, change, message):
    assert message in placeto("calibrate", *files, "-o", "out", *change).complaint


def test_inputs_are_not_overwritten(placeto, files, folder):
    save_cluster(load_cluster("two.yaml"), folder / "local-2-calibrated.yaml")
    where = ("-o", str(folder))
    result = placeto("calibrate", "--cluster", "local-2-calibrated.yaml", *files[2:], *where)
    assert result.status == 2
    assert "local-2-calibrated.yaml: would be overwritten" in result.err
    save_graph(load_graph(files[3]), folder / "two_layers.json.gz")
    result = placeto("calibrate", *files[:2], "--graph", "two_layers.json.gz", *where)
    assert result.status == 2
    assert "two_layers.json.gz: would be overwritten" in result.err
