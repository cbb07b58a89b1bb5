"""Real workers: what runs where, and what becomes of placements that do not run."""

import contextlib
import ctypes
import os
import signal
import socket
import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from placeto import (
    Channel,
    Cluster,
    Device,
    PlacementProblem,
    PlacetoError,
    load_cluster,
    simulate,
)
from placeto.measurement import Effort, Runtime
from placeto.measurement.child import Child
from placeto.measurement.tasks import tasks_of
from placeto.measurement.timeline import side_by_side
from placeto.measurement.trace import read_trace
from placeto.measurement.worker import serve
from placeto.support.launch import Launch
from tests.measurement.conftest import fitted, split

SHORT = Effort(warm_up=1, steps=3, deadline_seconds=120)
PIDFD_GETFD = 438  # the same on every architecture
ENDLESS = Effort(warm_up=0, steps=10**9, deadline_seconds=120)


def listening(process: int) -> list[bytes]:
    """The interface that each listening socket of a process is bound to; empty for all of them."""
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]
    ]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    interfaces = []
    for entry in Path(f"/proc/{process}/fd").iterdir():
        held = ""
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            held = os.readlink(entry)
        if held in inodes:
            handle = os.pidfd_open(process)
            copy = ctypes.CDLL(None).syscall(PIDFD_GETFD, handle, int(entry.name), 0)
            os.close(handle)
            if copy < 0:
                pytest.skip("this kernel shows no sockets of other processes")
            with socket.socket(fileno=copy) as found:
                bound = found.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
            interfaces.append(bound.rstrip(b"\0"))
    return interfaces


def test_placements_take_turns(runtime, pair, saved):
    step = saved("two_layers")
    problem, devices = split(step.graph, pair)
    many = np.stack([0 * devices, devices])
    one, two = runtime.compare(problem, many, step.runnable, SHORT, traces=1)
    assert (one.reason, two.reason) == ("", "")
    assert len(one.samples) == len(two.samples) == 3
    assert min(*one.samples, *two.samples) > 0
    assert one.paces == two.paces
    assert len(one.paces) == 3
    assert min(one.paces) >= 1
    assert (len(one.traces), len(two.traces)) == (0, 1)


def test_placements_run_at_once(runtime, pair, saved):
    step = saved("two_layers")
    problem, devices = split(step.graph, pair)
    placed = [(problem, 0 * devices + number, step.runnable) for number in range(2)]
    alone, beside = runtime.at_once(placed, SHORT, traces=2)
    for runs, traces in ((alone, 0), (beside, 2)):
        for run in runs:
            assert (run.reason, len(run.samples), len(run.traces)) == ("", SHORT.steps, traces)
    names = [str(name) for name in pair.tensorflow_devices()]
    for number, run in enumerate(beside):
        for trace in run.traces:  # each is of its own device
            assert {each.device for each in read_trace(trace, names).ops} == {number}


def test_graphs_whose_inputs_differ_in_size_take_turns(runtime, pair, saved):
    placed = []
    for rows in (64, 32):
        step = saved(f"two_layers?rows={rows}")
        placed.append((*split(step.graph, pair), step.runnable))
    for run in runtime.in_turn(placed, SHORT):
        assert (run.reason, len(run.samples)) == ("", SHORT.steps)


def test_ops_run_where_the_placement_says(runtime, pair, saved):
    from tensorflow.core.protobuf.config_pb2 import RunMetadata

    step = saved("two_layers")
    problem, devices = split(step.graph, pair)
    assert set(devices) == {0, 1}
    measurement = runtime.measure(problem, devices, step.runnable, SHORT, traces=8)
    assert measurement.reason == ""
    assert len(measurement.samples) == 3
    assert 0 < measurement.step_time == sorted(measurement.samples)[1]
    assert len(measurement.traces) == 8
    names = {str(d): i for i, d in enumerate(pair.tensorflow_devices())}
    ran = {}
    for device in RunMetadata.FromString(measurement.traces[1]).step_stats.dev_stats:
        for node in device.node_stats:
            ran.setdefault(node.node_name, set()).add(names.get(device.device))
    placed = dict(zip(step.graph.op_names, devices[problem.op_group], strict=True))
    inputs = {each["name"] for each in step.graph.meta["run"]["inputs"]}
    # Nothing is folded, fused or left out.
    assert set(placed) - set(ran) == set()
    for name in set(placed) - inputs:
        assert ran[name] == {placed[name]}, name
    # Where their only consumers are, wherever the placement has them.
    assert ran["inputs"] == {placed["MatMul"]}
    # TensorFlow now and then leaves a tensor that came out of a trace.
    events = [
        each
        for trace in measurement.traces
        for each in side_by_side(
            problem, simulate(problem, devices), replace(measurement, traces=(trace,))
        )["traceEvents"]
        if each["pid"] >= 3 and each["ph"] != "M"
    ]
    threads = {each["args"]["op"]: each["tid"] for each in events if "op" in each.get("args", {})}
    assert set(threads) == set(range(step.graph.num_ops))
    first, second = (step.graph.op_names.index(name) for name in ("MatMul", "MatMul_1"))
    assert threads[first] != threads[second]
    carried = {each["name"]: each["args"] for each in events if each["pid"] == 4}
    assert carried["Relu"] == {
        "producer": "Relu", "bytes": 64 * 64 * 4, "source": "worker0", "destinations": ["worker1"],
    }  # fmt: skip


def test_workers_have_cores_of_their_own_and_keep_to_the_loopback(runtime, pair, saved):
    step = saved("two_layers")
    problem, devices = split(step.graph, pair)
    runtime.measure(problem, devices, step.runnable, SHORT)
    workers = [pid for name, pid in runtime.process_ids.items() if name.startswith("worker")]
    assert len(workers) == 2
    if all(device.cores == 1 for device in pair.devices):
        cores = [os.sched_getaffinity(pid) for pid in workers]
        assert [len(each) for each in cores] == [1, 1]
        assert cores[0] != cores[1]
    for pid in workers:
        assert listening(pid) == [b"lo"]
    assert listening(runtime.process_ids["the driver"]) == []


def test_one_placement_leaves_nothing_for_the_next(runtime, pair, saved):
    step = saved("two_layers")
    problem, devices = split(step.graph, pair)
    for placement in (devices, 1 - devices, devices):
        assert runtime.measure(problem, placement, step.runnable, SHORT).reason == ""
    # Whoever does not set the variables finds none.
    idle = replace(step.runnable, initializer="Const")
    left = runtime.measure(problem, devices, idle, SHORT)
    assert "first" in left.reason or "second" in left.reason
    assert "running its first steps" in left.reason


def test_an_op_that_raises_is_the_reason_and_leaves_the_workers(runtime, pair, saved):
    step = saved("two_layers?classes=1")
    problem, devices = split(step.graph, pair)
    first = runtime.measure(problem, devices, step.runnable, SHORT)
    assert "is not in [0, 1)" in first.reason
    assert "\n" not in first.reason
    assert first.step_time == np.inf
    before = runtime.process_ids
    good = saved("two_layers")
    with pytest.raises(PlacetoError, match=r"the GraphDef lacks .* is it that of another"):
        runtime.measure(problem, devices, saved("large").runnable, SHORT)
    problem, devices = split(good.graph, pair)
    assert runtime.measure(problem, devices, good.runnable, SHORT).reason == ""
    assert runtime.process_ids == before


def test_a_worker_killed_during_a_step(runtime, pair, saved):
    step = saved("two_layers")
    problem, devices = split(step.graph, pair)
    assert runtime.measure(problem, devices, step.runnable, SHORT).feasible
    victim = runtime.process_ids["worker 1"]
    threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
    killed = runtime.measure(problem, devices, step.runnable, ENDLESS)
    assert killed.reason.startswith("worker 1 was killed (by hand, or for want of memory)")
    assert "\n" not in killed.reason
    again = runtime.measure(problem, devices, step.runnable, SHORT)
    assert again.reason == ""
    assert runtime.process_ids["worker 1"] != victim


def test_a_placement_that_does_not_fit(saved):
    # One process, so that no other has to start.
    alone = fitted(load_cluster("local-cpu"))
    small = replace(alone.devices[0], memory_bytes=256 * 2**20)
    step = saved("large?megabytes=512")
    problem = PlacementProblem(step.graph, alone, "papers")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    with Runtime(replace(alone, devices=(small,))) as runtime:
        full = runtime.measure(problem, devices, step.runnable, SHORT)
        assert full.reason.startswith("OOM when allocating tensor with shape[524288,256]")
        assert "\n" not in full.reason
        assert runtime.process_ids == {}


def test_workers_that_run_elsewhere_and_one_that_hangs(saved):
    alone = tasks_of(fitted(load_cluster("local-cpu")))[0]
    place = {"job": "worker", "number": 0, "memory_bytes": None, "serving_threads": 1}
    worker = Child("elsewhere", "placeto.measurement.worker", asdict(alone) | place)
    try:
        address = f"127.0.0.1:{worker.receive(120)['port']}"
        worker.send({"cluster": {"worker": [address]}})
        assert worker.receive(120) == {"target": f"grpc://{address}"}
        # The second device does not exist.
        names = tuple(f"/job:worker/task:0/device:{kind}" for kind in ("CPU:0", "GPU:7"))
        far = tuple(Device(name, "cpu", 2**30, tensorflow=name) for name in names)
        channels = (Channel("between", names, names, 1e9),)
        launch = Launch((("worker", (address,)),))
        cluster = Cluster("elsewhere", far, channels, launch=launch)
        step = saved("two_layers")
        problem = PlacementProblem(step.graph, cluster, "papers")
        devices = np.zeros(problem.num_groups, dtype=np.int64)
        with Runtime(cluster) as runtime:
            assert runtime.measure(problem, devices, step.runnable, SHORT).reason == ""
            assert list(runtime.process_ids) == ["the driver"]
            nowhere = runtime.measure(problem, devices + 1, step.runnable, SHORT)
            assert "GPU:7" in nowhere.reason
            assert "\n" not in nowhere.reason
            worker.process.send_signal(signal.SIGSTOP)
            hasty = replace(SHORT, deadline_seconds=1)
            late = runtime.measure(problem, devices, step.runnable, hasty)
            assert late.reason == "not done within 1 s; it was building its session"
            assert runtime.process_ids == {}
    finally:
        worker.close()


def test_a_port_that_is_taken():
    settings = {
        "job": "worker", "number": 0, "num_cores": 1, "num_cpu_devices": 1, "serving_threads": 1,
    }  # fmt: skip
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PlacetoError) as error:
            serve(settings, {"worker": [f"127.0.0.1:{port}"]})
    assert str(error.value).startswith(f"cannot serve on port {port}: ")
    assert str(error.value).endswith("is it in use?")
