"""From devices to files: on devices that are simulated, so that the answer is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from placeto import (
    PlacementProblem,
    PlacetoError,
    load_cluster,
    load_graph,
    simulate,
)
from placeto.measurement import Effort, Measurement, Runnable, Runtime
from placeto.measurement.calibration import calibrate, save_calibration
from placeto.measurement.calibration.calibrate import without_inputs
from tests.builders import make_graph
from tests.measurement.traces import W0, W1, WORKERS, op, run_metadata

STEP_OVERHEAD = 1e-3
SLOWER = 1.25
BESIDE = 1.5  # ops beside a device that is busy
GRAPH = replace(
    make_graph(
        {"input": 0, **{f"op{number}": number * 1e-3 for number in range(1, 20)}},
        [("input", 10**6, ["op1", "op2"]), ("op1", 10**6, ["op3"]), ("op2", 10**5, ["op4"])],
        param_bytes={"op3": 100},
    ),
    op_types=["Placeholder", *["Op"] * 19],
    meta={"run": {"sha256": "0"}, "source": "by hand"},
)
TRUTH = replace(
    WORKERS,
    devices=tuple(replace(each, launch_overhead_seconds=2e-4) for each in WORKERS.devices),
    channels=(
        replace(WORKERS.channels[0], bandwidth=1e9, latency_seconds=2e-4, overhead_seconds=3e-5),
        replace(WORKERS.channels[1], bandwidth=2e9, latency_seconds=1e-4, overhead_seconds=5e-5),
    ),
)


def run_on_truth(runtime, problem, devices, runnable, effort, *, traces=0, factor=1.0):
    """What `Runtime.measure` would say if the devices were those of `TRUTH`."""
    columns = {kind: factor * column for kind, column in problem.graph.op_seconds.items()}
    graph = replace(problem.graph, op_seconds=columns)
    real = PlacementProblem(graph, TRUTH, problem.op_group)
    step = simulate(real, devices).step_time + STEP_OVERHEAD
    of_ops = devices[problem.op_group]
    columns = [[], []]
    for number, name in enumerate(problem.graph.op_names):
        length = round(real.op_seconds[number, of_ops[number]] * 1e6)
        if length:
            columns[of_ops[number]].append(op(name, number * 10**5, (3, 3 + length), length + 7))
    names = ("w0", "w1")
    trace = run_metadata(**{name: col for name, col in zip(names, columns, strict=True) if col})
    return Measurement((step,) * 5, traces=(trace,) * traces)


def all_on_truth(runtime, placed, effort, *, traces=0):
    """`Runtime.in_turn`, likewise; where graphs differ, while the devices are slower."""
    runs = [run_on_truth(runtime, *each, effort, traces=traces) for each in placed]
    slower = SLOWER if len({problem.graph.name for problem, *_ in placed}) > 1 else 1.0
    return [replace(run, samples=tuple(slower * each for each in run.samples)) for run in runs]


def at_once_on_truth(runtime, placed, effort, traces=0):
    """`Runtime.at_once`, likewise."""
    beside = [run_on_truth(runtime, *each, effort, traces=traces, factor=BESIDE) for each in placed]
    return [run_on_truth(runtime, *each, effort) for each in placed], beside


def none_at_once(runtime, placed, effort, traces=0):
    none = [Measurement(reason="no memory")] * len(placed)
    return none, none


@pytest.fixture
def runnable(tmp_path):
    path = tmp_path / "here.graphdef"
    path.write_bytes(b"of the graph")
    return Runnable(path, "0", (), (), "initialize")


@pytest.fixture
def calibration(monkeypatch, runnable):
    assert [str(device) for device in WORKERS.tensorflow_devices()] == [W0, W1]
    monkeypatch.setattr(Runtime, "measure", run_on_truth)
    monkeypatch.setattr(Runtime, "in_turn", all_on_truth)
    monkeypatch.setattr(Runtime, "at_once", at_once_on_truth)
    said = []
    found = calibrate(WORKERS, [(GRAPH, runnable)], Effort(1, 5), 2, said.append)
    assert said[0] == "running by hand on all devices, in turn and at once"
    assert "sending from d0 to d1" in said
    return found


def test_the_figures_of_the_devices_are_found(calibration):
    cluster = calibration.cluster
    assert cluster.name == "pair-calibrated"
    for device in cluster.devices:
        assert device.kind == "pair-k"
        # A step's last overhead of 19 ends after the step.
        assert device.launch_overhead_seconds == pytest.approx(SLOWER * 2e-4, rel=0.1)
    for channel, wanted in zip(cluster.channels, TRUTH.channels, strict=True):
        assert channel.bandwidth == pytest.approx(wanted.bandwidth, rel=1e-3)
        assert channel.latency_seconds == pytest.approx(wanted.latency_seconds, rel=1e-3)
        assert channel.overhead_seconds == pytest.approx(wanted.overhead_seconds, rel=1e-2)
    launch = calibration.launches["pair-k"]
    assert launch.step_overhead == pytest.approx(STEP_OVERHEAD, rel=0.01)
    (graph,) = calibration.graphs
    assert graph.tensor_producer.tolist() == [1, 2]  # none of the input
    wanted = [0.0, *(SLOWER * BESIDE * number * 1e-3 for number in range(1, 20))]
    assert graph.op_seconds["pair-k"] == pytest.approx(wanted, rel=1e-3)
    assert graph.meta["costs"]["kinds"]["pair-k"]["alone"] == pytest.approx(1 / BESIDE, rel=1e-3)
    assert graph.op_seconds["k"].tolist() == GRAPH.op_seconds["k"].tolist()
    for check in calibration.checks:
        assert check["kernels"] == pytest.approx(SLOWER * BESIDE * 0.19)
        assert check["beside"] - check["measured"] == pytest.approx((BESIDE - 1) * 0.19)
        assert check["stretch"] == pytest.approx(1.0, abs=1e-3)
        assert check["again"] == pytest.approx(SLOWER * check["measured"])
        assert check["predicted"] == pytest.approx(check["again"], rel=0.01)


def test_microbatches_run_as_in_a_pipeline(calibration, monkeypatch, runnable):
    orders = []

    def seen(runtime, placed, effort, traces=0):
        orders.extend(problem.order for problem, *_ in placed)
        return at_once_on_truth(runtime, placed, effort, traces)

    monkeypatch.setattr(Runtime, "at_once", seen)
    pipelined = replace(GRAPH, name="pipelined", microbatch=np.array([-1, *[0] * 10, *[1] * 9]))
    graphs = [(GRAPH, runnable), (pipelined, runnable)]
    calibrate(WORKERS, graphs, Effort(1, 5), 2, lambda line: None, keep_channels=True)
    assert orders == ["fifo", "fifo", "gpipe", "gpipe"]


def test_graphs_that_cannot_run_in_turn_count_as_they_ran_alone(calibration, monkeypatch, runnable):
    said = []
    monkeypatch.setattr(Runtime, "in_turn", lambda runtime, placed, effort, **rest: (
        [Measurement(reason="no memory")] * len(placed)
        if any(problem.graph.name == GRAPH.name for problem, *_ in placed)
        else all_on_truth(runtime, placed, effort, **rest)
    ))  # fmt: skip
    found = calibrate(WORKERS, [(GRAPH, runnable)], Effort(1, 5), 2, said.append)
    assert any(line.endswith("they cannot be run in turn: no memory") for line in said)
    for check in found.checks:
        assert check["again"] == check["measured"]
    wanted = [0.0, *(BESIDE * number * 1e-3 for number in range(1, 20))]
    assert found.graphs[0].op_seconds["pair-k"] == pytest.approx(wanted, rel=1e-3)


def test_devices_that_cannot_all_run_the_graph_run_it_one_by_one(
    calibration, monkeypatch, runnable
):
    said = []
    monkeypatch.setattr(Runtime, "at_once", none_at_once)
    found = calibrate(WORKERS, [(GRAPH, runnable)], Effort(1, 5), 2, said.append)
    assert said[1:4] == [
        "by hand does not run on all devices at once: no memory",
        "running by hand on d0",
        "running by hand on d1",
    ]
    wanted = [0.0, *(SLOWER * number * 1e-3 for number in range(1, 20))]
    assert found.graphs[0].op_seconds["pair-k"] == pytest.approx(wanted, rel=1e-3)
    assert found.graphs[0].meta["costs"]["kinds"]["pair-k"]["alone"] == 1


def test_channels_are_kept_if_asked_for_and_graphs_measured(calibration, runnable):
    said = []
    known = replace(WORKERS, channels=TRUTH.channels, source="Known.")
    again = calibrate(known, [(GRAPH, runnable)], Effort(1, 5), 2, said.append, keep_channels=True)
    assert again.cluster.channels == TRUTH.channels
    assert not any("sending" in line for line in said)
    assert again.cluster.source.endswith("Channels as before: Known.")
    for old, new in zip(calibration.graphs, again.graphs, strict=True):
        assert new.op_seconds["pair-k"] == pytest.approx(old.op_seconds["pair-k"])


def test_the_files_load_and_simulate_as_the_devices_run(calibration, runnable, tmp_path):
    folder = tmp_path / "made" / "here"
    files = save_calibration(calibration, [runnable], folder)
    assert [path.name for path in files] == ["pair-calibrated.yaml", "by hand.json.gz"]
    assert {path.name for path in folder.iterdir()} == {
        "pair-calibrated.yaml", "by hand.json.gz", "by hand.graphdef",
    }  # fmt: skip
    assert (folder / "by hand.graphdef").read_bytes() == b"of the graph"
    cluster, graph = load_cluster(files[0]), load_graph(files[1])
    assert cluster == calibration.cluster
    assert "Measured on 20" in cluster.source
    assert "by placeto calibrate" in cluster.source
    assert graph.meta["run"] == {"sha256": "0", "graph_def": "by hand.graphdef"}
    assert "Measured on" in graph.meta["costs"]["kinds"]["pair-k"]["source"]
    devices = np.arange(20) % 2
    simulated = simulate(PlacementProblem(graph, cluster, "none"), devices).step_time
    slower = {"k": SLOWER * BESIDE * GRAPH.op_seconds["k"]}
    real = PlacementProblem(replace(without_inputs(GRAPH), op_seconds=slower), TRUTH, "none")
    assert simulated == pytest.approx(simulate(real, devices).step_time, rel=0.01)


def test_tensors_of_inputs_are_left_out_and_no_others():
    graph = without_inputs(GRAPH)
    assert graph.op_names == GRAPH.op_names
    assert graph.tensor_producer.tolist() == [1, 2]
    assert graph.tensor_bytes.tolist() == [10**6, 10**5]
    assert graph.edge_tensor.tolist() == [0, 1]
    assert graph.edge_consumer.tolist() == [3, 4]


def test_nothing_is_half_written(calibration, runnable, tmp_path):
    folder = tmp_path / "out"
    gone = replace(runnable, path=Path("/nowhere/x.graphdef"))
    with pytest.raises(PlacetoError, match="cannot be written: No such file"):
        save_calibration(calibration, [gone], folder)
    assert list(folder.iterdir()) == []
