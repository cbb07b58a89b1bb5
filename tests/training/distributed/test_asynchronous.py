"""Gradients of several controllers, applied to one set of parameters as they come."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from placeto.models.colocrl.settings import ColocRLConfig
from placeto.training import Trainer
from placeto.training.distributed.asynchronous import AsynchronousTrainer
from tests.training.distributed.here import controllers
from tests.training.distributed.problems import AGENTS, TOYS
from tests.training.distributed.test_synchronous import told, weights

REINFORCE = ["placeto-2019", "colocrl", "hierarchical"]
PROBLEMS, CONFIG = AGENTS["placeto-2019"]


def asynchronous(size, workers=1, problems=PROBLEMS, config=CONFIG):
    crew = controllers(problems, config, size, workers)
    return AsynchronousTrainer(problems, config, controllers=crew)


def steps(trainer, number):
    return [trainer.step() for _ in range(number)]


def same_weights(one, other):
    pairs = zip(weights(one), weights(other), strict=True)
    return all(torch.equal(mine, yours) for (_, mine), (_, yours) in pairs)


@pytest.mark.parametrize("name", REINFORCE)
@pytest.mark.parametrize("workers", [1, 2])
def test_one_controller_comes_to_what_one_process_comes_to(name, workers):
    problems, config = AGENTS[name]
    alone = Trainer(problems, config)
    trainer = asynchronous(1, workers, problems, config)
    reports = told(steps(trainer, config.updates))
    assert [report[:-2] for report in reports] == told(steps(alone, config.updates))
    assert [report[-2:] for report in reports] == [[0, 0]] * config.updates  # no other, not stale
    assert same_weights(trainer, alone)
    assert (trainer.episodes, trainer.evaluations, trainer.best) == (
        alone.episodes,
        alone.evaluations,
        alone.best,
    )


def test_gradients_are_of_the_parameters_that_were_handed_out():
    """Three controllers begin together: the second gradient is one update old, the third two."""
    trainer = asynchronous(3)
    reports = steps(trainer, CONFIG.updates)
    assert [report.controller for report in reports] == [0, 1, 2, 0]
    # The first is handed out again when its gradient was applied, and comes after two others.
    assert [report.staleness for report in reports] == [0, 1, 2, 2]
    assert [report.graph for report in reports] == ["fork", "diamond", "fork", "diamond"]
    given = [assignment.weights for assignment in trainer._crew.items]
    first = dict(weights(Trainer(PROBLEMS, CONFIG)))
    for each in given[:3]:
        assert all(torch.equal(each[name], value) for name, value in first.items())
    assert not all(torch.equal(given[3][name], value) for name, value in first.items())


def test_an_update_is_adams_with_the_gradient_that_was_sent():
    """By hand: two gradients, both of the first parameters, applied one after the other."""
    trainer = asynchronous(2)
    sent = []
    take = trainer._crew.take

    def spy():
        ticket, contribution = take()
        sent.append(contribution)
        return ticket, contribution

    trainer._crew.take = spy
    by_hand = Trainer(PROBLEMS, CONFIG)
    parameters = list(by_hand.policy.parameters())
    for _ in range(2):
        report = trainer.step()
        by_hand.optimizer.param_groups[0]["lr"] = report.learning_rate
        for parameter, gradient in zip(parameters, sent[-1].gradients, strict=True):
            parameter.grad = gradient.clone()
        by_hand.optimizer.step()
    assert same_weights(trainer, by_hand)
    norms = [torch.stack([g.norm() for g in each.gradients]).norm() for each in sent]
    reported = [min(each.report.gradient_norm, CONFIG.gradient_norm) for each in sent]
    assert np.allclose(norms, reported, rtol=1e-4)


def test_controllers_draw_other_numbers_and_remember_their_own_baselines():
    problems = TOYS[:1]
    trainer = asynchronous(2, problems=problems)
    first, second = steps(trainer, 2)
    assert first.step_time != second.step_time
    one, other = trainer.state()["controllers"]
    assert not torch.equal(one["baselines"]["0"], other["baselines"]["0"])


def test_what_was_under_way_is_done_after_a_restart():
    """The second part has the updates that the first had handed out and not got back."""
    config = replace(CONFIG, updates=8)
    trainer = asynchronous(3, config=config)
    steps(trainer, 2)
    state = trainer.state()
    assert state["to_do"] == [2, 3]  # of the third controller, and of the first once more
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    again = asynchronous(3, config=config)
    again.restore(torch.load(file, weights_only=True))
    reports = steps(again, 6)
    numbers = [assignment.number for assignment in again._crew.items]
    assert sorted(numbers) == [2, 3, 4, 5, 6, 7]
    assert [report.update for report in reports] == [3, 4, 5, 6, 7, 8]
    assert again.episodes == 8 * config.episodes
    whole = asynchronous(1, config=config)
    steps(whole, 3)
    resumed = asynchronous(1, config=config)
    resumed.restore(whole.state())
    assert told(steps(whole, 5)) == told(steps(resumed, 5))
    assert same_weights(whole, resumed)


def test_gradients_of_before_a_restart_are_not_applied():
    trainer = asynchronous(2)
    before = trainer.state()
    trainer._hand_out(None)
    trainer.restore(before)
    trainer.step()
    assert trainer.updates == 1
    assert [assignment.number for assignment in trainer._crew.items] == [0, 1, 0, 1]


def test_stale_gradients_find_the_optimum():
    """The fork's optimum is 30 ms; placements drawn at random take more than 32 ms."""
    config = ColocRLConfig(updates=80, episodes=16, width=8, entropy_bonus=0.1)
    trainer = asynchronous(4, problems=TOYS[:1], config=config)
    reports = steps(trainer, config.updates)
    assert {report.staleness for report in reports[4:]} == {3}
    assert trainer.best == [pytest.approx(0.03)]
    assert reports[0].step_time > 0.032
    assert np.mean([report.step_time for report in reports[-5:]]) < 0.0315
