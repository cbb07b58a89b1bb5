"""A measured step beside the simulated one, event by event."""

import pytest

from placeto import simulate
from placeto.measurement import Measurement
from placeto.measurement.timeline import side_by_side
from placeto.problem import PlacementProblem
from placeto.support.files import read_json, write_json
from tests.builders import make_graph
from tests.measurement.traces import W0, W1, WORKERS, op, received, run_metadata

NAMES = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


@pytest.fixture
def document(tmp_path):
    graph = make_graph({"a": 1e-3, "b": 2e-3, "c": 1e-3}, [("a", 1000, ["b"]), ("b", 10, ["c"])])
    problem = PlacementProblem(graph, WORKERS, "none")
    trace = run_metadata(
        w0=[
            op("a", 100, (1, 900), 1000),
            op("placeto_input/x", 600, (0, 10), 700, "ReadVariableOp"),  # while `a` runs
            op("c", 5000, (0, 0), 0),
        ],
        w1=[op("b", 1600, (2, 1998), 2000, "Relu")],
        w0_again=[received("b", 10, 3700, 300, W1, W0)],
        stream=[received("a", 1000, 1100, 450, W0, W1)],
    )
    measurement = Measurement((0.005, 0.007, 0.006), traces=(trace,))
    schedule = simulate(problem, [0, 1, 0])
    path = tmp_path / "t.json"
    write_json(path, side_by_side(problem, schedule, measurement))
    return read_json(path)


def test_processes_and_threads(document):
    names = {
        (event["pid"], event.get("tid")): event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] in ("process_name", "thread_name")
    }
    assert names == {
        (1, None): "simulated devices", (1, 0): "d0", (1, 1): "d1",
        (2, None): "simulated channels", (2, 0): "up", (2, 1): "down",
        (3, None): "measured devices", (3, 0): "d0", (3, 1): "d1", (3, 2): "d0 (2)",
        (4, None): "measured channels", (4, 0): "up", (4, 1): "down",
    }  # fmt: skip


def test_measured_events_by_hand(document):
    events = [
        {key: value for key, value in event.items() if key != "s"}
        for event in document["traceEvents"]
        if event["pid"] >= 3 and event["name"] not in NAMES
    ]
    assert events == [
        {"ph": "X", "pid": 3, "tid": 0, "name": "a", "ts": 0.0, "dur": 1000.0, "cat": "Op",
         "args": {"kernel_us": 899.0, "op": 0, "group": 0}},
        {"ph": "X", "pid": 3, "tid": 2, "name": "placeto_input/x", "ts": 500.0, "dur": 700.0,
         "cat": "ReadVariableOp", "args": {"kernel_us": 10.0}},
        {"ph": "X", "pid": 3, "tid": 1, "name": "b", "ts": 1500.0, "dur": 2000.0, "cat": "Relu",
         "args": {"kernel_us": 1996.0, "op": 1, "group": 1}},
        {"ph": "i", "pid": 3, "tid": 0, "name": "c", "ts": 4900.0, "cat": "Op",
         "args": {"kernel_us": 0.0, "op": 2, "group": 2}},
        {"ph": "X", "pid": 4, "tid": 0, "name": "a", "ts": 1000.0, "dur": 450.0,
         "cat": "transfer", "args": {"producer": "a", "bytes": 1000, "source": "d0",
                                     "destinations": ["d1"]}},
        {"ph": "X", "pid": 4, "tid": 1, "name": "b", "ts": 3600.0, "dur": 300.0,
         "cat": "transfer", "args": {"producer": "b", "bytes": 10, "source": "d1",
                                     "destinations": ["d0"]}},
    ]  # fmt: skip


def test_the_simulated_step_is_beside_it(document):
    ops = [
        (event["name"], event["tid"], event["ts"], event["dur"])
        for event in document["traceEvents"]
        if event["pid"] == 1 and event["ph"] == "X"
    ]
    # 1000 bytes take 1 ms, 10 bytes 10 us.
    assert ops == [("a", 0, 0.0, 1000.0), ("b", 1, 2000.0, 2000.0), ("c", 0, 4010.0, 1000.0)]
    assert document["otherData"] == {
        "graph": "by hand",
        "cluster": "pair",
        "step_seconds": pytest.approx(5.01e-3),
        "measured_step_seconds": 0.006,
        "traced_step_seconds": pytest.approx(4.9e-3),
    }
