from dataclasses import replace

import numpy as np
import pytest
import torch

from placeto.envs import generator
from placeto.models.agent import Wanted
from placeto.models.network import masked
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.models.placeto_2019.structure import structure
from placeto.training.trainer import Baselines, Trainer, returns_to_go


def played(problem, **options):
    """A trainer, and five episodes of its agent."""
    trainer = Trainer([problem], Placeto2019Config(**options))
    return trainer, trainer.agent.roll_out(Wanted(0, 5), np.random.default_rng(0))


def step_up(trainer, rollout, advantages, entropy_bonus, **settings):
    """An update by plain ascent, in parts of 7 states."""
    trainer.config = replace(trainer.config, **settings)
    trainer.optimizer = torch.optim.SGD(trainer.policy.parameters(), lr=1.0)
    trainer.agent.states_at_once = lambda index: 7
    trainer.update(0, rollout, advantages, entropy_bonus)


def test_returns_to_go_by_hand():
    rewards = np.array([[1.0, 0.0], [2.0, -1.0], [4.0, 5.0]])
    assert returns_to_go(rewards).tolist() == [[7.0, 4.0], [6.0, 4.0], [4.0, 5.0]]


def test_baseline_is_the_mean_of_the_last_episodes_of_the_problem():
    baselines = Baselines(Placeto2019Config(baseline_episodes=3))
    first = baselines.advantages("a", np.array([[1.0, 3.0]]))
    assert first.tolist() == [[-1.0, 1.0]]
    second = baselines.advantages("a", np.array([[5.0, 7.0]]))
    assert second.tolist() == [[0.0, 2.0]]  # of 3, 5 and 7
    other = baselines.advantages("b", np.array([[2.0, 2.0]]))
    assert other.tolist() == [[0.0, 0.0]]


def test_moving_baseline_is_an_average_that_forgets():
    baselines = Baselines(Placeto2019Config(baseline="moving", baseline_decay=0.75))
    first = baselines.advantages("a", np.array([[1.0, 3.0], [0.0, 0.0]]))
    assert first.tolist() == [[-1.0, 1.0], [0.0, 0.0]]
    second = baselines.advantages("a", np.array([[6.0, 4.0], [8.0, 8.0]]))
    assert second.tolist() == [[4.0, 2.0], [8.0, 8.0]]  # over 2 and 0: not of the present
    third = baselines.advantages("a", np.array([[3.0], [2.0]]))
    assert third.tolist() == [[0.25], [0.0]]  # over 0.75 * 2 + 0.25 * 5 and 0.25 * 8
    assert baselines.advantages("b", np.array([[9.0]])).tolist() == [[0.0]]


def test_gradient_is_that_of_the_objective_written_out():
    problem = generator.diamond()
    trainer, rollout = played(problem, rounds=2, keep=0.5, initial_placement="random")
    policy = trainer.policy
    advantages = np.random.default_rng(1).normal(size=rollout.rewards.shape)
    graph = structure(problem)

    objective = torch.zeros(())
    for step in range(6):
        for episode in range(5):
            logits = policy(
                torch.from_numpy(rollout.features[step, episode : episode + 1]),
                torch.from_numpy(rollout.current[step, episode : episode + 1]),
                graph,
            )[0]
            chances = logits.softmax(dim=0)
            weight = float(advantages[step, episode] / advantages.std())
            objective = objective + weight * chances[rollout.actions[step, episode]].log()
            objective = objective - 0.3 * (chances * chances.log()).sum()
    expected = torch.autograd.grad(objective / 30, list(policy.parameters()))
    before = [parameter.detach().clone() for parameter in policy.parameters()]

    step_up(trainer, rollout, advantages, entropy_bonus=0.3, gradient_norm=1e9)
    for parameter, old, ascent in zip(policy.parameters(), before, expected, strict=True):
        torch.testing.assert_close(parameter.detach() - old, ascent, rtol=1e-3, atol=1e-5)


def test_gradient_is_clipped():
    trainer, rollout = played(generator.diamond(), rounds=1)
    before = torch.cat([p.detach().flatten() for p in trainer.policy.parameters()])
    advantages = np.random.default_rng(1).normal(size=rollout.rewards.shape)
    step_up(trainer, rollout, advantages, entropy_bonus=0.0, gradient_norm=1e-3)
    after = torch.cat([p.detach().flatten() for p in trainer.policy.parameters()])
    assert float((after - before).norm()) == pytest.approx(1e-3, rel=1e-3)


def test_forbidden_devices_have_no_chance_and_no_gradient():
    logits = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    log = masked(logits, torch.tensor([[True, False, True]])).log_softmax(dim=-1)
    log[0, 0].backward()
    assert log[0, 1] == -torch.inf
    assert logits.grad[0, 1] == 0
    assert log.detach().exp()[0, [0, 2]].tolist() == pytest.approx(
        [1 / (1 + np.e**2), 1 / (1 + np.e**-2)]
    )
