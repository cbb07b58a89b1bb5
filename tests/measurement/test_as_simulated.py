"""On two real workers a step runs as simulated: its order, tensors that wait, memory that is kept.

The same step in a runtime without the settings shows that each of these tests can fail.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from placeto import ComputationGraph, PlacementProblem, load_graph, simulate
from placeto.extraction import extract
from placeto.graph import BACKWARD, FORWARD
from placeto.measurement import Effort, Runtime, RuntimeSettings, conduct, find_runnable
from placeto.measurement.trace import read_trace
from placeto.simulation import ordered_ops
from tests.extraction.running import STEPS as KERAS_STEPS

EFFORT = Effort(warm_up=2, steps=3, deadline_seconds=120)
HEAP = 64 * 2**20
TRACES = 4  # one now and then lacks what was received


@pytest.fixture(scope="module")
def without(pair):
    """A runtime as TensorFlow has it where oneDNN, which keeps memory itself, is not on."""
    settings = RuntimeSettings("none", keeps_memory=False, serving_threads=0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        with Runtime(pair, settings) as started:
            yield started


@pytest.fixture(scope="module")
def step(saved):
    return saved("two_chains")


def placed(graph: ComputationGraph, cluster) -> tuple[PlacementProblem, np.ndarray]:
    """What is in scope `far` on the second worker."""
    problem = PlacementProblem(graph, cluster, "none")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [name.startswith("far") for name in graph.op_names]
    return problem, devices


def renumbered(graph: ComputationGraph) -> ComputationGraph:
    """The same graph with the last op first, so that of two ready ops the other one begins."""
    last = graph.num_ops - 1
    return replace(
        graph,
        op_names=graph.op_names[::-1],
        op_types=graph.op_types[::-1],
        op_seconds={kind: seconds[::-1] for kind, seconds in graph.op_seconds.items()},
        param_bytes=graph.param_bytes[::-1],
        temp_bytes=graph.temp_bytes[::-1],
        colocation=graph.colocation[::-1],
        flops=None if graph.flops is None else graph.flops[::-1],
        tensor_producer=last - graph.tensor_producer,
        edge_consumer=last - graph.edge_consumer,
    )


def conducts(runtime, step, pair):
    """How the traced steps went, in both orders of the ready ops: those that have what was sent."""
    found = []
    for graph in (step.graph, renumbered(step.graph)):
        problem, devices = placed(graph, pair)
        run = runtime.measure(problem, devices, step.runnable, EFFORT, traces=TRACES)
        assert run.reason == ""
        schedule = simulate(problem, devices)
        seen = [conduct(problem, schedule, replace(run, traces=(each,))) for each in run.traces]
        found.append([each for each in seen if len(each.send_waits)])
    return found


def most_on_their_way(graph, runs):
    """Of each device, how many microbatches it has begun forward and not ended backward, at most.

    Runs are (op, device, begin, end), those of the ops that take time.
    """
    most = []
    for device in range(2):
        events = []
        for part in range(graph.num_microbatches):
            here = [run for run in runs if run[1] == device and graph.microbatch[run[0]] == part]
            events.append((min(begin for op, _, begin, _ in here if graph.phase[op] == FORWARD), 1))
            events.append((max(end for op, *_, end in here if graph.phase[op] == BACKWARD), -1))
        most.append(int(np.cumsum([change for _, change in sorted(events)]).max()))
    return most


def arenas(process):
    """How many heaps of glibc's arenas a process has, beside the main one (proc(5)).

    Each is reserved as a whole, 64 MiB at a multiple of 64 MiB, and writable from its begin on.
    """
    mapped = []
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        ends, rights, *_ = line.split()
        begin, end = (int(each, 16) for each in ends.split("-"))
        mapped.append((begin, end, rights))
    return sum(
        first[2] == "rw-p"
        and first[0] % HEAP == 0
        and second == (first[1], first[0] + HEAP, "---p")
        for first, second in pairwise(mapped)
    )


def faults(process):
    """How many pages a process was given so far (proc(5), minflt)."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()[7])


@pytest.fixture(scope="module")
def conducted(runtime, step, pair):
    return conducts(runtime, step, pair)


@pytest.fixture(scope="module")
def left_alone(without, step, pair):
    return conducts(without, step, pair)


def test_ops_begin_in_the_simulated_order(conducted, left_alone):
    for seen in conducted:
        assert {each.in_order for each in seen} == {1.0}
    # Left alone, workers cannot have run both of two opposite orders.
    assert min(each.in_order for seen in left_alone for each in seen) < 1.0


def test_tensors_are_sent_while_an_op_runs(conducted, left_alone):
    for seen in conducted:
        assert any(not each.tensors_wait for each in seen)
    assert any(seen and all(each.tensors_wait for each in seen) for seen in left_alone)


def test_no_thread_has_memory_of_its_own(runtime, without, step, pair):
    problem, devices = placed(step.graph, pair)
    for each in (runtime, without):
        assert each.measure(problem, devices, step.runnable, EFFORT).reason == ""
    workers = ("worker 0", "worker 1")
    assert [arenas(runtime.process_ids[worker]) for worker in workers] == [0, 0]
    assert all(arenas(without.process_ids[worker]) > 1 for worker in workers)


def test_memory_of_large_tensors_is_kept(without, saved, pair, monkeypatch):
    """64 MiB, more than any threshold of glibc's leaves in a heap, are 16,384 pages.

    Fewest of several rounds: before its holes fit, a heap that keeps memory still grows at times.
    """
    large = saved("large?megabytes=64")
    problem = PlacementProblem(large.graph, pair, "none")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    effort = replace(EFFORT, steps=6)

    def pages_a_step(started, rounds):
        given = []
        for _ in range(rounds):
            assert started.measure(problem, devices, large.runnable, effort).reason == ""
            given.append(faults(started.process_ids["worker 0"]))
        return min(np.diff(given)) / effort.steps

    given_back = pages_a_step(without, 3)
    assert given_back > 12000
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    with Runtime(pair) as kept:
        assert pages_a_step(kept, 8) < 0.1 * given_back


def test_no_more_microbatches_are_on_their_way_on_a_device_than_simulated(runtime, pair, tmp_path):
    # The second table is on the second worker: what it begins with is held back by the first one.
    extract(f"{KERAS_STEPS}:joined?batch=6&microbatches=6").save(tmp_path / "step.json.gz")
    graph = load_graph(tmp_path / "step.json.gz")
    number = {name: op for op, name in enumerate(graph.op_names)}
    ordered = ordered_ops(graph)
    names = [str(device) for device in pair.tensorflow_devices()]
    found = {}
    for order in ("1f1b", "eager-1f1b"):
        problem = PlacementProblem(graph, pair, "none", order=order)
        devices = np.zeros(problem.num_groups, dtype=np.int64)
        devices[problem.op_group[["far" in name for name in graph.op_names]]] = 1
        where, schedule = devices[problem.op_group], simulate(problem, devices)
        simulated = [
            (op, where[op], schedule.start[op], schedule.finish[op])
            for op in np.flatnonzero(ordered).tolist()
        ]
        found[order] = most_on_their_way(graph, simulated)
        measured = runtime.measure(problem, devices, find_runnable(graph), EFFORT, traces=2)
        assert measured.reason == ""
        for each in measured.traces:
            seen = [
                (number[run.op], run.device, run.begin, run.end)
                for run in read_trace(each, names).ops
                if run.op in number and ordered[number[run.op]]
            ]
            # On either worker; elsewhere runs are those of copies that the runtime has made.
            seen = [run for run in seen if where[run[0]] == run[1]]
            assert most_on_their_way(graph, seen) == found[order]
            assert conduct(problem, schedule, replace(measured, traces=(each,))).in_order == 1.0
    # Two, and one more where a gradient of weights is left when the longest path back has ended.
    assert found == {"1f1b": [3, 2], "eager-1f1b": [6, 6]}
