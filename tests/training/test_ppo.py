"""Proximal policy optimisation, beside REINFORCE."""

import math

import numpy as np
import pytest
import torch

from placeto.envs import generator
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.hierarchical.settings import HierarchicalConfig
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.training import Trainer
from placeto.training.trainer import clipped_surrogate
from tests.training.test_reinforce import played, step_up
from tests.training.test_trainer import (
    TOYS,
    best_step_time,
    goes_to,
    trainer_from_a_random_start,
)

SMALL = [
    Placeto2019Config(episodes=4, rounds=1, width=4, initial_placement="random"),
    ColocRLConfig(episodes=4, width=3),
    HierarchicalConfig(episodes=4, width=3, clusters=3),
]


def weights(network):
    return [parameter.tolist() for parameter in network.parameters()]


def variant(config, **settings):
    return type(config)(**config.to_document() | settings)


@pytest.mark.parametrize(
    ("chance", "advantage", "value", "slope"),
    [
        # Both actions had a chance of 1/2; the ratio is chance / 0.5, and its slope in the logit of
        # what was done is ratio * (1 - chance).
        (0.5, 2.0, 2.0, 2.0 * 0.5),
        (0.55, 2.0, 2.2, 2.2 * 0.45),
        (0.8, 2.0, 2.4, 0.0),  # 1.2 * 2: likelier than before by more than is followed
        (0.8, -2.0, -3.2, -3.2 * 0.2),  # it is to be less likely: followed back
        (0.3, -2.0, -1.6, 0.0),  # 0.8 * -2
        (0.3, 2.0, 1.2, 1.2 * 0.7),
    ],
)
def test_surrogate_of_two_actions_by_hand(chance, advantage, value, slope):
    logits = torch.tensor([[math.log(chance), math.log(1 - chance)]], dtype=torch.float64)
    logits.requires_grad_()
    taken = logits.log_softmax(dim=-1)[:, 0]
    old = torch.full((1,), math.log(0.5), dtype=torch.float64)
    surrogate = clipped_surrogate(taken, old, torch.tensor([advantage]), 0.2)
    (gradient,) = torch.autograd.grad(surrogate.sum(), logits)
    assert float(surrogate.detach()) == pytest.approx(value, rel=1e-12)
    if slope == 0:
        assert gradient.tolist() == [[0.0, 0.0]]
    assert gradient[0].tolist() == pytest.approx([slope, -slope], rel=1e-12)


@pytest.mark.parametrize("config", SMALL, ids=lambda config: type(config).__name__)
def test_one_epoch_is_reinforce_bit_for_bit(config):
    found = []
    for algorithm in ("reinforce", "ppo"):
        trainer = Trainer(
            [generator.diamond()], variant(config, algorithm=algorithm, epochs=1, clip=0.01)
        )
        reports = [vars(trainer.step()) | {"steps_per_second": None} for _ in range(3)]
        found.append((reports, weights(trainer.policy)))
    assert found[0] == found[1]


def test_second_epoch_is_the_clipped_objective_written_out():
    trainer, rollout = played(generator.diamond(), rounds=1, keep=0.5, initial_placement="random")
    agent = trainer.agent
    advantages = np.random.default_rng(1).normal(size=rollout.rewards.shape)
    parameters = list(agent.network.parameters())
    looks = []

    def look():
        before = [parameter.detach().clone() for parameter in parameters]
        looks.append((before, agent.terms(0, rollout, slice(None))[0].detach()))

    trainer._tick = look
    step_up(
        trainer,
        rollout,
        advantages,
        entropy_bonus=0.0,
        gradient_norm=1e9,
        algorithm="ppo",
        epochs=2,
        clip=0.05,
    )
    # The last part of an epoch is looked at before its step.
    (_, old), (before, taken) = looks[len(looks) // 2 - 1], looks[-1]
    ratios = (taken - old).exp().tolist()
    followed = []
    for ratio, weight in zip(ratios, (advantages / advantages.std()).flatten(), strict=True):
        far = ratio > 1.05 if weight > 0 else ratio < 0.95
        followed.append(0.0 if far else ratio * weight)
    assert 0 < followed.count(0.0) < len(followed)
    after = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        for parameter, value in zip(parameters, before, strict=True):
            parameter.copy_(value)
    logs = agent.terms(0, rollout, slice(None))[0]
    expected = torch.autograd.grad((logs * torch.tensor(followed)).mean(), parameters)
    for now, then, ascent in zip(after, before, expected, strict=True):
        torch.testing.assert_close(now - then, ascent, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("toy", TOYS)
def test_reaches_the_best_placement_from_a_random_start(toy, seed):
    # In fewer updates than REINFORCE, of four gradient steps each.
    trainer = trainer_from_a_random_start(toy, seed, algorithm="ppo", updates=40)
    for _ in range(trainer.config.updates):
        trainer.step()
    assert goes_to(trainer) == pytest.approx(best_step_time(trainer.problems[0]), rel=1e-9)
