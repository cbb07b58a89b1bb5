"""The evaluator that measures, on devices that are pretended but for the last test."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from placeto import PlacetoError, load_cluster
from placeto.measurement import Effort, Measurement, MeasuringEvaluator, Runnable
from placeto.objective import penalised_time
from placeto.simulation import EvaluatedBatch, simulate
from tests.builders import make_cluster, make_graph, make_problem

NOTHING = Runnable(Path("none"), "", (), (), "")


class Pretended:
    """Stands for a runtime: the runs end one after another as they are told to."""

    def __init__(self, cluster, *ends):
        self.cluster = cluster
        self.ends = list(ends)
        self.runs = []
        self.closed = 0

    def measure(self, problem, devices, runnable, effort):
        self.runs.append((devices.tolist(), runnable, effort))
        end = self.ends.pop(0)
        return Measurement(reason=end) if isinstance(end, str) else Measurement((end,))

    def close(self):
        self.closed += 1


def fork(memory=100):
    """a (1 s) before b and c (10 s each) before d (1 s); a tensor takes a second."""
    graph = make_graph(
        {"a": 1.0, "b": 10.0, "c": 10.0, "d": 1.0},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    return make_problem(graph, make_cluster(2, memory=memory))


def evaluator(problem, *ends, effort=None, **options):
    pretended = Pretended(problem.cluster, *ends)
    made = MeasuringEvaluator(pretended, effort, {problem.graph.name: NOTHING}, **options)
    return made, pretended


def placements(*rows):
    return np.array(rows)


def test_what_is_measured_and_what_is_simulated():
    problem = fork()
    evaluate, pretended = evaluator(problem, 44.0, 26.0, effort=Effort(steps=7))
    outcomes = evaluate(problem, placements([0, 0, 0, 0], [0, 0, 1, 0]))
    assert outcomes.step_time.tolist() == [44.0, 26.0]
    assert outcomes.feasible.tolist() == [True, True]
    # Simulated: 22 s in the order of the ops, so that the starts are stretched to twice.
    assert outcomes.group_start[0].tolist() == [0.0, 2.0, 22.0, 42.0]
    for row, devices in enumerate([[0, 0, 0, 0], [0, 0, 1, 0]]):
        assert outcomes.peak_memory[row].tolist() == simulate(problem, devices).peak_memory.tolist()
    assert [run[0] for run in pretended.runs] == [[0, 0, 0, 0], [0, 0, 1, 0]]
    assert pretended.runs[0][1:] == (NOTHING, Effort(steps=7))


def test_a_placement_that_ran_had_the_memory():
    problem = fork(memory=2)
    assert not simulate(problem, [0] * 4).feasible
    evaluate, _ = evaluator(problem, 5.0, "out of memory", "out of memory")
    outcomes = evaluate(problem, placements([0] * 4, [1] * 4))
    assert outcomes.feasible.tolist() == [True, False]
    assert outcomes.peak_memory.tolist() == [[2, 0], [0, 3]]
    penalty = 2.0**30  # a second a byte
    assert penalised_time(problem, outcomes, penalty).tolist() == [5.0, 10.0 + 1.0]


def test_placements_are_run_once_and_remembered():
    problem, other = fork(), fork()
    evaluate, pretended = evaluator(problem, 1.0, 2.0, 3.0)
    rows = placements([0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0])
    assert evaluate(problem, rows).step_time.tolist() == [1.0, 2.0, 1.0]
    assert evaluate(problem, rows[::-1]).step_time.tolist() == [1.0, 2.0, 1.0]
    assert len(pretended.runs) == evaluate.runs == 2
    assert evaluate.measurement(problem, rows[1]).samples == (2.0,)
    # Not mixed up with those of another problem.
    assert evaluate(other, rows[:1]).step_time.tolist() == [3.0]
    assert evaluate(problem, rows[:0]).step_time.shape == (0,)
    with pytest.raises(PlacetoError, match="this placement was not measured yet"):
        evaluate.measurement(other, rows[1])


def test_a_batch_of_moves_is_evaluated_where_it_changed():
    problem = fork()
    evaluate, pretended = evaluator(problem, 4.0, 3.0)
    batch = EvaluatedBatch(problem, 2, evaluate)
    rows = np.arange(2)
    batch.place(rows, np.zeros((2, 4), dtype=int))
    batch.move(rows, np.array([1, 1]), np.array([0, 1]))
    assert batch.outcomes.step_time.tolist() == [4.0, 3.0]
    assert len(pretended.runs) == 2


def test_a_failure_that_passes_is_not_held_against_the_placement():
    problem = fork()
    evaluate, pretended = evaluator(problem, "worker 1 was killed", 3.0)
    outcomes = evaluate(problem, placements([0] * 4))
    assert (outcomes.step_time.tolist(), outcomes.feasible.tolist()) == ([3.0], [True])
    assert evaluate.failures == ["worker 1 was killed"]
    assert len(pretended.runs) == 2


def test_one_that_fails_is_twice_as_slow_as_the_slowest_that_ran():
    problem = fork()
    evaluate, _ = evaluator(problem, 3.0, 5.0, "x", "y", 50.0, "z", "z")
    rows = placements([0] * 4, [1] * 4, [0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0])
    first = evaluate(problem, rows[:3])
    assert first.step_time.tolist() == [3.0, 5.0, 10.0]
    assert first.feasible.tolist() == [True, True, False]
    assert evaluate.measurement(problem, rows[2]).reason == "y"
    # It stays what it was; the next one is judged by what is known then.
    later = evaluate(problem, rows[[3, 2, 4]])
    assert later.step_time.tolist() == [50.0, 10.0, 100.0]
    assert np.isfinite(later.group_start).all()
    assert evaluate.failures == ["x", "y", "z", "z"]


def test_the_fastest_that_ran():
    problem = fork()
    evaluate, _ = evaluator(problem, "x", 3.0, 2.0, 4.0, attempts=1)
    rows = placements([0] * 4, [1] * 4, [0, 1, 0, 1], [1, 0, 0, 0])
    evaluate(problem, rows[:1])
    with pytest.raises(PlacetoError, match="no placement of it ran"):
        evaluate.fastest(problem)
    evaluate(problem, rows)
    assert evaluate.fastest(problem).tolist() == [0, 1, 0, 1]


def test_the_graph_def_beside_the_graphs_file_is_run(saved):
    step = saved("two_layers")
    graph = replace(step.graph, meta={**step.graph.meta, "source": "nowhere:step"})
    problem = make_problem(graph, load_cluster("local-2"))
    pretended = Pretended(problem.cluster, 1.0)
    MeasuringEvaluator(pretended)(problem, placements([0] * problem.num_groups))
    assert [runnable for _, runnable, _ in pretended.runs] == [step.runnable]


class Plagued:
    """A runtime of which every so many placements a worker is killed at a time of its own."""

    def __init__(self, runtime, every):
        self.runtime, self.every = runtime, every
        self.cluster = runtime.cluster
        self.killed = 0
        self.measured = 0
        self.failed = False

    def measure(self, *arguments):
        again, self.failed = self.failed, False
        self.measured += not again
        timer = None
        if not again and self.measured % self.every == 0:
            victim = self.runtime.process_ids[f"worker {self.killed % 2}"]
            timer = threading.Timer(0.02 * (self.killed % 4), os.kill, (victim, signal.SIGKILL))
            timer.start()
            self.killed += 1
        measurement = self.runtime.measure(*arguments)
        if timer is not None:
            timer.join()
        self.failed = not measurement.feasible
        return measurement
