import itertools

import numpy as np
import pytest
import torch

from placeto import load_cluster, load_graph
from placeto.envs import generator
from placeto.heuristics.initial import random_placement
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.training import Trainer

TOYS = [generator.chain, generator.fork, generator.diamond, generator.unequal]
# Much entropy at first: with little, some seeds settle for one device on the diamond.
SETTINGS = dict(
    updates=150,
    learning_rate=5e-3,
    final_learning_rate=5e-4,
    entropy_bonus=1.0,
    baseline_episodes=64,
    rounds=2,
    keep=0.0,
)


def best_step_time(problem):
    """Of all placements on two devices, one by one."""
    every = np.array(list(itertools.product(range(2), repeat=problem.num_groups)))
    return step_times(problem, every).min()


def trainer_from_a_random_start(toy, seed, **changed):
    problem = toy()
    start = random_placement(problem, np.random.default_rng(seed))
    return Trainer([problem], Placeto2019Config(seed=seed, **SETTINGS | changed), starts=[start])


def goes_to(trainer):
    """Step time of where the policy goes by itself: no draw, no best of many."""
    return float(trainer.roll_out(0, episodes=1, greedy=True).step_time[0])


@pytest.mark.parametrize("toy", TOYS)
def test_reaches_the_best_placement_from_a_random_start(toy):
    trainer = trainer_from_a_random_start(toy, seed=0)
    for _ in range(trainer.config.updates):
        trainer.step()
    assert goes_to(trainer) == pytest.approx(best_step_time(trainer.problems[0]), rel=1e-9)


def test_without_training_it_does_not():
    reached = 0
    for toy, seed in itertools.product(TOYS, range(5)):
        trainer = trainer_from_a_random_start(toy, seed)
        reached += goes_to(trainer) <= best_step_time(trainer.problems[0]) * (1 + 1e-9)
    assert reached < 10


def test_one_policy_for_two_graphs():
    problems = [generator.fork(), generator.diamond()]
    trainer = Trainer(problems, Placeto2019Config(updates=4, episodes=3, rounds=2))
    reports = [trainer.step() for _ in range(4)]
    assert [report.graph for report in reports] == ["fork", "diamond", "fork", "diamond"]
    assert [report.update for report in reports] == [1, 2, 3, 4]
    assert [report.episodes for report in reports] == [3, 6, 9, 12]
    assert reports[0].best_step_time >= reports[2].best_step_time == trainer.best[0]
    assert reports[1].best_step_time >= reports[3].best_step_time == trainer.best[1]


def test_schedules_are_linear():
    config = Placeto2019Config(updates=5, episodes=2, learning_rate=5e-3, final_learning_rate=1e-3)
    trainer = Trainer([generator.fork()], config)
    rates = [trainer.step().learning_rate for _ in range(5)]
    assert rates == pytest.approx([5e-3, 4e-3, 3e-3, 2e-3, 1e-3])
    assert trainer.step(progress=7.0).learning_rate == pytest.approx(1e-3)


@pytest.mark.parametrize("reward", ["improvement", "terminal"])
@pytest.mark.parametrize("traversal", ["topological", "random"])
@pytest.mark.parametrize(
    ("passing", "pooling"),
    [("rounds", "partition"), ("sweep", "partition"), ("none", "all"), ("sweep", "all")],
)
def test_every_variant_changes_every_weight(reward, traversal, passing, pooling):
    config = Placeto2019Config(
        updates=1, episodes=4, passing=passing, pooling=pooling, reward=reward,
        traversal=traversal, sweeps=2, initial_placement="random", keep=0.5,
    )  # fmt: skip
    trainer = Trainer([generator.diamond()], config)
    before = {name: p.detach().clone() for name, p in trainer.policy.named_parameters()}
    trainer.step()
    for name, parameter in trainer.policy.named_parameters():
        assert not torch.equal(parameter, before[name]), name


def test_pins_and_missing_kernels_are_obeyed():
    problem = PlacementProblem(
        load_graph("nmt"), load_cluster("k80x4-cpu"), 12, pins={0: 3, 5: 1, 7: 4}
    )
    seen = []
    trainer = Trainer(
        [problem],
        Placeto2019Config(updates=2, episodes=4, initial_placement="random", keep=0.0),
        visit=lambda problem, devices, outcomes: seen.append(devices.copy()),
    )
    trainer.step()
    placements = np.concatenate(seen)
    assert (placements[:, [0, 5, 7]] == [3, 1, 4]).all()
    assert problem.allowed[np.arange(problem.num_groups), placements].all()
    assert trainer.evaluations == len(placements)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_bit(threads, monkeypatch):
    # 2 sweeps of 128 groups in 4 episodes: 8 parts of the gradient.
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 128)
    config = Placeto2019Config(updates=2, episodes=4, sweeps=2, rounds=1, width=4)
    weights = []
    before = torch.get_num_threads()
    for count in (1, threads):
        monkeypatch.setattr("numba.get_num_threads", lambda count=count: count)
        torch.set_num_threads(count)
        trainer = Trainer([problem], config)
        for _ in range(2):
            trainer.step()
        weights.append([parameter.tolist() for parameter in trainer.policy.parameters()])
    torch.set_num_threads(before)
    assert weights[0] == weights[1]
