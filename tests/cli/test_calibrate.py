import json

import numpy as np
import pytest

from placeto import load_cluster, load_graph, save_cluster, save_graph, simulate
from placeto.measurement import Measurement, Runtime, find_runnable
from placeto.reports.tables import calibration_tables
from tests.measurement.conftest import fitted, saved, split  # noqa: F401 (`saved` is a fixture)
from tests.measurement.traces import W0, W1, op, run_metadata


@pytest.fixture
def files(saved, folder):  # noqa: F811
    """Arguments that name two workers and a step."""
    save_cluster(fitted(load_cluster("local-2")), folder / "two.yaml")
    return ("--cluster", "two.yaml", "--graph", str(saved("two_layers").path))


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
    # Its GraphDef is beside it.
    assert find_runnable(graph).path == folder / "out" / "two_layers.graphdef.gz"
    problem, devices = split(graph, cluster)
    assert seconds.max() < simulate(problem, devices).step_time < np.inf


def test_what_is_printed(placeto, files, folder, monkeypatch):
    assert [str(each) for each in load_cluster("two.yaml").tensorflow_devices()] == [W0, W1]
    trace = run_metadata(w0=[op("MatMul", 0, (0, 500), 500)], w1=[op("MatMul", 0, (0, 500), 500)])
    measurement = Measurement((0.002, 0.001, 0.002), traces=(trace,))
    efforts = []

    def measure(runtime, problem, devices, runnable, effort, *, traces=0):
        efforts.append((effort, traces))
        return measurement

    monkeypatch.setattr(Runtime, "measure", measure)
    result = placeto("calibrate", *files, "-o", "out", "--traces", "4", "--deadline", "7")
    assert result.status == 0
    assert "to-worker1" in result.out
    assert "local-2-cpu" in result.out
    assert "2 ms" in result.out
    assert "the cluster is in out/local-2-calibrated.yaml" in result.err
    assert (efforts[0][0].deadline_seconds, efforts[0][1]) == (7.0, 4)
    graph = load_graph("out/two_layers.json.gz")
    assert graph.op_seconds["local-2-cpu"].sum() == pytest.approx(5e-4)


def test_a_machine_that_does_not_come_to_rest_is_warned_of(placeto, files, monkeypatch):
    trace = run_metadata(w0=[op("MatMul", 0, (0, 500), 500)], w1=[op("MatMul", 0, (0, 500), 500)])
    runs = []

    def measure(runtime, problem, devices, runnable, effort, *, traces=0):
        runs.append(problem.graph.name)
        return Measurement((0.002 * 1.1 ** len(runs),), traces=(trace,) * traces)

    monkeypatch.setattr(Runtime, "measure", measure)
    result = placeto("calibrate", *files, "-o", "out", "--json")
    assert result.status == 0
    assert runs.count("two_layers") == 2 * 2 * 3
    assert "warning: two_layers on worker0 is predicted to take" in result.err
    assert "when it ran again, after 3 tries" in result.err
    assert [check["tries"] for check in result.document["graphs"]] == [3, 3]


def test_what_cannot_be_run_is_one_line_and_leaves_nothing(placeto, files, folder, monkeypatch):
    failed = Measurement(reason="worker 1 was killed")
    monkeypatch.setattr(Runtime, "measure", lambda *arguments, **options: failed)
    result = placeto("calibrate", *files, "-o", "out")
    assert "error: graph 'two_layers' on 'worker0': cannot be run: " in result.complaint
    assert not (folder / "out").exists()


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


def test_one_device_has_no_table_of_channels():
    graph = {
        "graph": "g", "device": "d", "measured": 2.0, "kernels": 1.0, "stretch": 1.5,
        "predicted": 2.0, "again": 2.0, "tries": 1,
    }  # fmt: skip
    device = {"device": "d", "kind": "k", "op_overhead": 1e-6, "step_overhead": 1e-3}
    channel = {
        "channel": "c", "bandwidth": 2**30, "latency_seconds": 0.0, "overhead_seconds": 0.0,
        "error": 0.1,
    }  # fmt: skip
    row = {"devices": [device], "channels": [], "graphs": [graph]}
    headers = [
        [str(table.columns[0].header) for table in calibration_tables(row | {"channels": found})]
        for found in ([], [channel])
    ]
    assert headers == [["device", "all ops of"], ["device", "channel", "all ops of"]]


def test_two_graphs_of_one_name(placeto, files):
    result = placeto("calibrate", *files, *files[2:], "-o", "out")
    assert result.status == 2
    assert "two graphs are called 'two_layers'" in result.err


def test_two_graphs_of_one_file(placeto, files, folder):
    for name in ("a/b", "a_b"):
        document = json.loads((folder / "fork.json").read_text()) | {"name": name}
        (folder / f"{name.replace('/', '-')}.json").write_text(json.dumps(document))
    argv = ("calibrate", *files[:2], "--graph", "a-b.json", "--graph", "a_b.json", "-o", "new")
    assert "or would both be a_b.json.gz" in placeto(*argv).complaint


def test_no_graph(placeto, files):
    result = placeto("calibrate", *files[:2], "-o", "out")
    assert result.status == 2
    assert "no graph; name at least one" in result.err
