"""What becomes of processes that die, hang or are interrupted, with some that do so when told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError
from placeto.measurement import Effort, MeasuringEvaluator, Runnable, Runtime
from placeto.measurement import runtime as processes
from placeto.measurement.child import Child
from tests.builders import make_graph

EFFORT = Effort(steps=2, deadline_seconds=60.0)


def told(what):
    return Runnable(Path(what), "", (), (), "")


RAN = told("ran")


@pytest.fixture(scope="module")
def puppets(pair):
    """Two workers and a driver without TensorFlow."""
    with pytest.MonkeyPatch.context() as patched, Runtime(pair) as made:
        patched.setattr(processes, "_DRIVER_MODULE", "tests.measurement.puppet")
        patched.setattr(processes, "_WORKER_MODULE", "tests.measurement.puppet")
        yield made


@pytest.fixture
def problem(pair):
    """Seven ops, so that there are 128 placements."""
    graph = make_graph(dict.fromkeys("abcdefg", 1.0))
    return PlacementProblem(replace(graph, op_seconds={"cpu": graph.op_seconds["k"]}), pair, "none")


def run(runtime, problem, what="ran", effort=EFFORT, **more):
    devices = np.array([1, 1, 0, 0, 0, 0, 0])
    return runtime.measure(problem, devices, told(what), effort, **more)


def works_again(runtime, problem):
    """Whether all three processes are there, and yield what they should."""
    return run(runtime, problem).samples == (3.0, 3.0) and len(runtime.process_ids) == 3


def test_processes_live_on_from_one_placement_to_the_next(puppets, problem):
    measurement = run(puppets, problem, traces=2)
    assert (measurement.samples, measurement.traces) == ((3.0, 3.0), (b"trace", b"trace"))
    before = puppets.process_ids
    assert sorted(before) == ["the driver", "worker 0", "worker 1"]
    assert run(puppets, problem, "raises").reason == "no luck (it was running its steps)"
    with pytest.raises(PlacetoError, match="another graph"):
        run(puppets, problem, "refuses")
    assert works_again(puppets, problem)
    assert puppets.process_ids == before


@pytest.mark.parametrize("then", ["", ", raises"])
def test_a_worker_that_dies_is_the_reason_whatever_the_driver_says(puppets, problem, then):
    assert works_again(puppets, problem)
    victim = puppets.process_ids["worker 1"]
    killed = run(puppets, problem, f"kills {victim}{then}")
    assert killed.reason == (
        "worker 1 was killed (by hand, or for want of memory) (it was running its steps)"
    )
    assert puppets.process_ids == {}
    assert works_again(puppets, problem)
    assert puppets.process_ids["worker 1"] != victim


def test_a_driver_that_crashes(puppets, problem):
    crashed = run(puppets, problem, "crashes")
    assert crashed.reason == "the driver was ended by SIGSEGV (it was running its steps)"
    assert works_again(puppets, problem)


def test_what_ran_out_of_memory_is_started_again(puppets, problem):
    assert works_again(puppets, problem)
    assert run(puppets, problem, "exhausts").reason == "OOM (it was running its steps)"
    assert puppets.process_ids == {}
    assert works_again(puppets, problem)


def test_a_placement_that_hangs_is_given_up_at_the_deadline(puppets, problem):
    assert works_again(puppets, problem)
    late = run(puppets, problem, "hangs", replace(EFFORT, deadline_seconds=0.2))
    assert late.reason == "not done within 0.2 s; it was running its steps"
    assert puppets.process_ids == {}
    assert works_again(puppets, problem)


def test_ctrl_c_leaves_no_process_and_the_next_is_not_answered_for_the_last(
    puppets, problem, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    assert works_again(puppets, problem)
    children = list(puppets._children.values())
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Child, "receive", interrupted)
        run(puppets, problem)
    assert puppets.process_ids == {}
    assert not any(child.alive for child in children)
    assert works_again(puppets, problem)


class Plagued:
    """A runtime of which a worker is killed during every tenth placement, both in turn."""

    def __init__(self, runtime):
        self.runtime, self.cluster = runtime, runtime.cluster
        self.asked = []

    def measure(self, problem, devices, runnable, effort):
        if devices.tolist() not in self.asked:
            self.asked.append(devices.tolist())
            number, rest = divmod(len(self.asked), 10)
            if rest == 0:
                victim = self.runtime.process_ids[f"worker {number % 2}"]
                runnable = told(f"kills {victim}")
        return self.runtime.measure(problem, devices, runnable, effort)


def test_a_hundred_placements_lose_nothing_by_ten_killed_workers(puppets, problem):
    rng = np.random.default_rng(0)
    rows = rng.permutation(2**7)[:100]
    many = rows[:, None] >> np.arange(7) & 1
    plagued = Plagued(puppets)
    evaluate = MeasuringEvaluator(plagued, EFFORT, {problem.graph.name: RAN})
    outcomes = evaluate(problem, many)
    assert outcomes.feasible.all()
    assert outcomes.step_time.tolist() == (1.0 + many.sum(axis=1)).tolist()
    assert len(evaluate.failures) == 10
    assert all("was killed" in reason for reason in evaluate.failures)
    assert {reason[:8] for reason in evaluate.failures} == {"worker 0", "worker 1"}
    assert (len(plagued.asked), evaluate.runs) == (100, 110)
