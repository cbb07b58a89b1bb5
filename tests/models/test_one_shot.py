"""Agents that place all groups at once: what holds for both of them."""

import itertools

import numpy as np
import pytest
import torch

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.envs import generator
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.hierarchical.agent import Clustering
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.models.one_shot import Shots
from placeto.objective import penalised_time
from placeto.placers.learned import for_few_groups
from placeto.simulation import simulate_many, step_times
from placeto.support.threads import one_thread_an_operation
from placeto.training import Trainer, train
from tests.builders import make_cluster, make_graph, make_problem
from tests.training.test_run import content, interrupt_at
from tests.training.test_trainer import TOYS, best_step_time

CONFIGS = [ColocRLConfig, HierarchicalConfig]
TINY = {
    ColocRLConfig: ColocRLConfig(width=3, episodes=5),
    HierarchicalConfig: HierarchicalConfig(width=3, episodes=5, clusters=2),
}


def every(sizes):
    return torch.tensor(list(itertools.product(*map(range, sizes)))).reshape(-1, len(sizes))


def every_choice(trainer):
    """All that the agent could do, and the (n, num_groups) placements that come of it."""
    problem = trainer.problems[0]
    order = torch.from_numpy(problem.group_order)
    groups, devices = problem.num_groups, problem.num_devices
    if isinstance(trainer.config, ColocRLConfig):
        every_placement = every([devices] * groups)
        return every_placement[:, order].T, every_placement.numpy()
    both = every([2] * groups + [devices] * 2)
    cluster, given = both[:, :groups], both[:, groups:]
    placements = torch.empty_like(cluster)
    placements[:, order] = given.gather(1, cluster)
    return Clustering(cluster, given.T), placements.numpy()


def tiny_trainer(kind, problem):
    """In double precision, and far from uniform."""
    trainer = Trainer([problem], TINY[kind])
    network = trainer.agent.network.double()
    with torch.no_grad():
        network.placer.head.weight.mul_(40)
    choices, placements = every_choice(trainer)
    return trainer, Shots(None, None, None, None, choices), placements


@pytest.mark.parametrize("kind", CONFIGS)
def test_chances_of_all_that_can_be_done_add_up(kind):
    trainer, everything, placements = tiny_trainer(kind, generator.fork())
    log, mean_entropy = trainer.agent.terms(0, everything, slice(None))
    chances = log.exp()
    assert len(chances) == len(placements)
    assert float(chances.sum().detach()) == pytest.approx(1, abs=1e-12)
    # Entropy of the whole is the mean of the sums of the entropies on the way.
    expected = -float((chances * log.masked_fill(chances == 0, 0)).sum().detach())
    choices = 4 if kind is ColocRLConfig else 6
    found = float((chances * mean_entropy).sum().detach())
    assert found * choices == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", CONFIGS)
@one_thread_an_operation()
def test_policy_gradient_is_that_of_the_expected_reward(kind):
    """Against finite differences of the expectation over all that can be done."""
    problem = generator.unequal()
    trainer, everything, placements = tiny_trainer(kind, problem)
    rewards = torch.from_numpy(-np.sqrt(step_times(problem, placements)))
    parameters = list(trainer.policy.parameters())

    def log_chances():
        return trainer.agent.terms(0, everything, slice(None))[0]

    log = log_chances()
    weights = (log.exp() * rewards).detach()
    gradients = torch.autograd.grad((weights * log).sum(), parameters)
    rng = np.random.default_rng(0)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        for place in rng.choice(parameter.numel(), min(2, parameter.numel()), replace=False):
            values = []
            with torch.no_grad():
                flat = parameter.view(-1)
                for shift in (1e-6, -2e-6):
                    flat[place] += shift
                    values.append(float((log_chances().exp() * rewards).sum()))
                flat[place] += 1e-6
            difference = (values[0] - values[1]) / 2e-6
            assert float(gradient.view(-1)[place]) == pytest.approx(difference, abs=1e-7, rel=1e-4)


def numbered_backwards(toy, pins=()):
    """The toy with its groups' numbers against the topological order."""
    groups = np.arange(toy.num_groups)[::-1]
    return PlacementProblem(toy.graph, toy.cluster, groups, pins=dict(pins))


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("problem", [generator.chain(), numbered_backwards(generator.chain())])
def test_draws_are_as_frequent_as_they_are_likely(kind, problem):
    trainer, everything, placements = tiny_trainer(kind, problem)
    chances = trainer.agent.terms(0, everything, slice(None))[0].exp().detach().numpy()
    expected = np.zeros(16)
    np.add.at(expected, placements @ [8, 4, 2, 1], chances)
    drawn = trainer.roll_out(0, episodes=4000).devices @ [8, 4, 2, 1]
    found = np.bincount(drawn, minlength=16) / 4000
    assert np.abs(found - expected).max() < 4 * 0.5 / np.sqrt(4000)
    assert expected.max() - expected.min() > 0.1


@pytest.mark.parametrize("kind", CONFIGS)
def test_rewards_are_of_the_penalised_step_time_of_what_is_visited(kind):
    # There is room for two of the three on a device.
    graph = make_graph(
        {"a": 1.0, "b": 2.0, "c": 4.0}, [("a", 4, ["b"])], param_bytes=dict.fromkeys("abc", 10)
    )
    problem = make_problem(graph, make_cluster(2, memory=28))
    visited = []
    trainer = Trainer(
        [problem],
        kind(width=3, episodes=20, memory_penalty=1e8, seed=1),
        visit=lambda problem, devices, outcomes: visited.append(devices),
    )
    played = trainer.roll_out(0, episodes=20)
    assert np.array_equal(np.concatenate(visited), played.devices)
    assert trainer.evaluations == 20
    outcomes = simulate_many(problem, played.devices)
    assert 0 < outcomes.feasible.sum() < 20
    cost = penalised_time(problem, outcomes, 1e8)
    assert np.array_equal(played.step_time, outcomes.step_time)
    assert np.array_equal(played.best_cost, cost)
    np.testing.assert_allclose(played.rewards, -np.sqrt(cost)[None])
    assert trainer.best == [cost.min()]


@pytest.mark.parametrize("kind", CONFIGS)
def test_pins_and_missing_kernels_are_obeyed_and_learned_from(kind):
    problem = PlacementProblem(
        load_graph("nmt"), load_cluster("k80x4-cpu"), 12, pins={0: 3, 5: 1, 7: 4}
    )
    seen = []
    trainer = Trainer(
        [problem],
        kind(width=4, episodes=6),
        visit=lambda problem, devices, outcomes: seen.append(devices),
    )
    for _ in range(3):
        trainer.step()
    placements = np.concatenate(seen)
    assert (placements[:, [0, 5, 7]] == [3, 1, 4]).all()
    assert problem.allowed[np.arange(12), placements].all()
    for parameter in trainer.policy.parameters():
        assert parameter.isfinite().all()


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("greedy", [False, True])
def test_pins_are_of_groups_by_their_numbers_not_by_their_place_in_the_order(kind, greedy):
    problem = numbered_backwards(generator.chain(), pins={0: 1, 1: 0})
    trainer = Trainer([problem], kind(width=3))
    placements = trainer.roll_out(0, episodes=50, greedy=greedy).devices
    assert (placements[:, :2] == [1, 0]).all()


def test_a_group_that_may_not_be_on_its_clusters_device_goes_where_it_is_fastest():
    toy = generator.unequal()  # device 1 is the fast one
    problem = PlacementProblem(toy.graph, toy.cluster, "none", pins={1: 0})
    trainer = Trainer([problem], HierarchicalConfig(width=3, clusters=1))
    placements = trainer.roll_out(0, episodes=50).devices
    assert set(map(tuple, placements.tolist())) == {(0, 0, 0, 0), (1, 0, 1, 1)}


def test_clusters_without_a_group_have_device_0_and_others_may_have_those_of_their_groups():
    toy = generator.fork()
    problem = PlacementProblem(toy.graph, toy.cluster, "none", pins={0: 1, 1: 1})
    trainer = Trainer([problem], HierarchicalConfig(width=3, clusters=3))
    may = trainer.agent._may(torch.tensor([[0, 0, 1, 1]]))
    assert may[:, 0].tolist() == [[False, True], [True, True], [True, False]]


def test_groupings_start_as_runs_of_the_topological_order():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24)
    trainer = Trainer([problem], HierarchicalConfig(clusters=5))
    cluster = trainer.roll_out(0, episodes=50).choices.cluster
    runs = torch.arange(24) * 5 // 24
    assert runs.bincount().tolist() == [5, 5, 5, 5, 4]
    assert 0.6 < float((cluster == runs).double().mean()) < 1


def test_clusters_are_embedded_as_the_paper_says():
    toy = generator.chain()
    trainer = Trainer([toy], HierarchicalConfig(width=3, clusters=3))
    found = trainer.policy.embed(trainer.agent.attributes, torch.tensor([[0, 0, 2, 2]]))
    # ops; 5 outputs, of which the first is 1 but for the last op; parents; children
    expected = torch.tensor(
        [
            [[2, 2, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1]],
            [[0] * 12],
            [[2, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1]],
        ]
    )
    torch.testing.assert_close(found, expected / torch.tensor([3.0, 1.0, 3.0])[:, None, None])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("toy", TOYS)
def test_colocrl_goes_to_the_best_placement(toy, seed):
    trainer = Trainer([toy()], ColocRLConfig(seed=seed, updates=100))
    for _ in range(100):
        trainer.step()
    reached = trainer.roll_out(0, episodes=1, greedy=True).step_time[0]
    assert reached == pytest.approx(best_step_time(trainer.problems[0]), rel=1e-9)


# It does not always settle there, so that the best of its draws is looked at.
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("toy", TOYS)
def test_hierarchical_finds_the_best_placement(toy, seed):
    config = for_few_groups(HierarchicalConfig(seed=seed, updates=60), 4, enough=32)
    trainer = Trainer([toy()], config)
    best = best_step_time(trainer.problems[0])
    while trainer.updates < 60 and trainer.best[0] > 1.001 * best:
        trainer.step()
    assert trainer.best[0] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_run_that_is_continued_is_the_run_that_was_not_stopped(kind, tmp_path):
    config, problems = kind(width=4, updates=4), [generator.fork()]
    train(problems, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(problems, config, tmp_path / "stopped", progress=interrupt_at(2))
    train(problems, config, tmp_path / "stopped")
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")
