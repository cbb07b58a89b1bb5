"""Step times from few runs, on workers that are pretended but for the last test."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, place, step_times
from placeto.measurement import CorrectingEvaluator, Measurement
from placeto.measurement.trials.evaluator import FIRST_RUNS, GAIN, NOT_RUN
from placeto.simulation import simulate
from tests.measurement.conftest import fitted, saved  # noqa: F401 (`saved` is a fixture)
from tests.measurement.trials.pretended import Pretended

DIED = Measurement(reason="worker 1 was killed", died=True)
FAILED = Measurement(reason="no memory")


@pytest.fixture(scope="module")
def problem():
    return PlacementProblem(load_graph("rnnlm"), load_cluster("local-2"), 40)


def evaluator(workers, problem, runs=20):
    return CorrectingEvaluator(workers, runs, runnables={problem.graph.name: None})


def random_placements(problem, count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (count, problem.num_groups))


def ran(evaluate, problem, many):
    found = [evaluate.measurement(problem, devices) is not NOT_RUN for devices in many]
    return np.array(found)


def climb(evaluate, problem, rounds, seed=0):
    """Devices that random moves of a few groups end with, kept where they are said to be faster."""
    rng = np.random.default_rng(seed)
    best = place(problem, "single").devices
    seconds = evaluate(problem, best[None]).step_time[0]
    for _ in range(rounds):
        flips = rng.random((8, problem.num_groups)) < 0.06
        many = np.where(flips, 1 - best, best)
        found = evaluate(problem, many).step_time
        if found.min() < seconds:
            best, seconds = many[found.argmin()], found.min()
    return best


def test_the_first_are_run_and_correct_what_is_said_of_others(problem):
    workers = Pretended(problem, 0, disturbed=0, drift=0)
    evaluate = evaluator(workers, problem)
    first, others = np.split(random_placements(problem, 60), [FIRST_RUNS])
    assert ran(evaluate, problem, first).sum() == 0
    evaluate(problem, first)
    assert ran(evaluate, problem, first).all()
    assert len(workers.runs) == evaluate.runs == FIRST_RUNS
    outcomes = evaluate(problem, others)
    apart = ~ran(evaluate, problem, others)
    true = np.array([workers.step_time(devices) for devices in others])
    assert apart.sum() > 20
    # Much faster than what was run is nothing that was not.
    least = min(workers.step_time(devices) for devices in workers.runs)
    assert outcomes.step_time[apart].min() >= (1 - GAIN) * 0.98 * least
    off = np.abs(np.log(outcomes.step_time[apart] / true[apart])).mean()
    # By the costs as believed, over those of the first that ran, others are further off.
    unit = workers.step_time(first[0]) / step_times(problem, first[:1])[0]
    believed = np.abs(np.log(unit * step_times(problem, others[apart]) / true[apart])).mean()
    assert off < min(0.5 * believed, 0.05)


def test_starts_and_memory_are_of_the_corrected_costs(problem):
    workers = Pretended(problem, 0, disturbed=0, drift=0)
    evaluate = evaluator(workers, problem, FIRST_RUNS)
    many = random_placements(problem, 30)
    evaluate(problem, many)
    outcomes = evaluate(problem, many)
    assert len(workers.runs) == FIRST_RUNS
    assert (outcomes.group_start < outcomes.step_time[:, None]).all()
    peak = simulate(problem, many[-1]).peak_memory
    assert outcomes.peak_memory[-1] == pytest.approx(peak, rel=0.05)  # the order may be another
    assert outcomes.feasible.all()


def test_a_machine_that_slows_down_changes_no_step_time(problem):
    workers = Pretended(problem, 5, disturbed=0, drift=0)
    workers.slope = 2.0  # a run takes a tenth of the first one's time longer than the one before
    evaluate = evaluator(workers, problem)
    many = random_placements(problem, FIRST_RUNS)
    found = evaluate(problem, many).step_time
    true = np.array([workers.step_time(devices) for devices in many])
    assert found / found[0] == pytest.approx(true / true[0], rel=0.02)
    low, high = evaluate.measurement(problem, many[2]).interval
    assert low <= found[2] <= high


def test_few_runs_lead_a_search_to_where_many_do(problem):
    seed = 0
    few, many = Pretended(problem, seed), Pretended(problem, seed)
    evaluate = evaluator(few, problem)
    found = climb(evaluate, problem, 40, seed)
    assert len(few.runs) <= evaluate.runs <= 20
    unlimited = climb(evaluator(many, problem, 10_000), problem, 40, seed)
    single = few.step_time(place(few.true, "single").devices)
    assert few.step_time(found) < 0.95 * single
    assert few.step_time(found) < 1.05 * many.step_time(unlimited)


def test_the_fastest_is_run_twice_when_it_is_asked_for_again(problem):
    workers = Pretended(problem, 0, disturbed=0, drift=0)
    evaluate = evaluator(workers, problem)
    many = random_placements(problem, FIRST_RUNS)
    evaluate(problem, many)
    best = evaluate.fastest(problem)
    for _ in range(3):
        evaluate(problem, many)
    again = sum(np.array_equal(run, best) for run in workers.runs)
    assert again == (1 if np.array_equal(best, many[0]) else 2)
    assert len(workers.runs) == FIRST_RUNS + again - 1


def test_little_that_differs_is_not_run(problem):
    workers = Pretended(problem, 0, disturbed=0, drift=0)
    evaluate = evaluator(workers, problem)
    one = place(problem, "single").devices
    work = problem.group_seconds.max(axis=1)
    near = one.copy()
    near[work.argmin()] = 1 - near[work.argmin()]
    evaluate(problem, np.stack([one, near, 1 - one]))  # the last: devices alike, exchanged
    assert len(workers.runs) == 1


def test_a_killed_worker_costs_a_run_and_a_failure_its_placement(problem):
    workers = Pretended(problem, 1, disturbed=0, drift=0, ends={2: DIED, 4: FAILED})
    evaluate = evaluator(workers, problem)
    many = random_placements(problem, FIRST_RUNS)
    outcomes = evaluate(problem, many)
    assert len(workers.runs) == evaluate.runs == FIRST_RUNS + 1
    assert outcomes.feasible.tolist() == [True, True, False, True]
    assert evaluate.failures == ["no memory"]
    assert outcomes.step_time[2] == pytest.approx(2 * outcomes.step_time[:2].max())
    assert evaluate.measurement(problem, many[2]).reason == "no memory"


def test_what_does_not_fit_is_not_run():
    cluster = load_cluster("local-2")
    small = tuple(replace(device, memory_bytes=1) for device in cluster.devices)
    problem = PlacementProblem(load_graph("rnnlm"), replace(cluster, devices=small), 40)
    workers = Pretended(problem)
    outcomes = evaluator(workers, problem)(problem, random_placements(problem, 6))
    assert not outcomes.feasible.any()
    assert workers.runs == []
    assert np.isfinite(outcomes.step_time).all()


def test_processes_that_cannot_be_started_are_no_reason_to_simulate(problem):
    workers = Pretended(problem, ends={3: PlacetoError("no process can be started")})
    evaluate = evaluator(workers, problem)
    with pytest.raises(PlacetoError, match="no process can be started"):
        evaluate(problem, random_placements(problem, FIRST_RUNS))
    with pytest.raises(PlacetoError, match="runs is 3, expected a number from 4"):
        CorrectingEvaluator(workers, 3)


def test_an_environment_on_real_workers(saved):  # noqa: F811
    step = saved("two_layers")
    env = gym.make(
        "DevicePlacement-v0",
        graph=step.path,
        cluster=fitted(load_cluster("local-2")),
        grouping="none",
        initial_placement="random",
        evaluator="measure",
        measure_options={"runs": 4, "warm_up": 1, "steps": 2, "deadline_seconds": 120.0},
    )
    _, info = env.reset(seed=0)
    assert (info["feasible"], info["reason"], info["steps_measured"] >= 2) == (True, "", True)
    infos = [env.step(int(action))[-1] for action in np.random.default_rng(0).integers(0, 2, 12)]
    for each in infos:
        assert 0 < each["step_time"] < 60
        assert each["reason"] == ("" if each["steps_measured"] else NOT_RUN.reason)
    evaluate = env.unwrapped._made_of.measures
    assert evaluate.runs <= 4
    env.close()
