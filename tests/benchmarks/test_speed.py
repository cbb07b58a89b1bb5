import numpy as np
import pytest

from benchmarks.speed import others
from benchmarks.speed.environment import episode
from benchmarks.speed.others import ReferenceEnv, grappler, reference_outcomes
from benchmarks.synthetic import synthetic_graph
from placeto import PlacementProblem, load_cluster, load_graph, simulate
from placeto.envs import DevicePlacementEnv, DevicePlacementVectorEnv
from placeto.heuristics.initial import all_on, random_placement
from placeto.simulation import simulate_many

GRAPH = synthetic_graph(200)


def test_reference_is_an_evaluator_like_the_simulator() -> None:
    problem = PlacementProblem(GRAPH, load_cluster("k80x4"), "auto")
    rng = np.random.default_rng(0)
    many = np.stack([random_placement(problem, rng) for _ in range(3)])
    expected, found = simulate_many(problem, many), reference_outcomes(problem, many)
    for name in ("step_time", "peak_memory", "group_start", "feasible"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("every", [1, 3])
def test_reference_runs_also_where_the_device_stays(every: int, monkeypatch) -> None:
    runs = []

    def counted(problem, many):
        runs.append(many.copy())
        return reference_outcomes(problem, many)

    monkeypatch.setattr(others, "reference_outcomes", counted)
    slow, env = ReferenceEnv(every, GRAPH), DevicePlacementEnv(GRAPH)
    slow.reset(seed=0)
    env.reset(seed=0)
    for step in range(9):
        expected, found = env.step(step // 3 % 2), slow.step(step // 3 % 2)
        assert found[1:4] == expected[1:4]
        assert all(np.array_equal(found[0][key], expected[0][key]) for key in expected[0])
    assert len(runs) == 9 // every


@pytest.mark.parametrize("shift", [0, 1])
def test_episodes_move_each_group_or_none(shift: int) -> None:
    env = DevicePlacementVectorEnv(2, GRAPH, initial_placement="random")
    start = env.reset(seed=0)[1]["best_placement"]
    seen: list[np.ndarray] = []
    step = env.step
    env.step = lambda actions: step(seen.append(actions) or actions)
    assert (episode(env, np.full((5, 2), shift)) > 0).all()
    order = env.problems[GRAPH.name].group_order[:5]
    assert (np.array(seen) == (start[:, order].T + shift) % env.num_devices).all()


def test_grappler_is_given_the_placement() -> None:
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), "auto")
    one = all_on(problem, 0)
    # In two halves the steps of one device's ops overlap; Grappler's op times are about ours.
    halves = np.where(np.arange(problem.num_groups) % 2, 0, 1)
    with grappler(problem, one) as step_time:
        alone = step_time()
    with grappler(problem, halves) as step_time:
        apart = step_time()
    assert alone == pytest.approx(simulate(problem, one).step_time, rel=0.2)
    assert apart != alone
