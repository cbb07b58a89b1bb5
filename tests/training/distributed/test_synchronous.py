"""Workers play the episodes that one process would play."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from placeto.models.agent import Wanted, joined
from placeto.training import Trainer
from placeto.training.distributed.synchronous import Share, SynchronousTrainer, shares
from tests.training.distributed.here import players
from tests.training.distributed.problems import AGENTS


def outcome(trainer):
    """What a trainer has come to, bit for bit."""
    return {
        "policy": {name: value.numpy().tobytes() for name, value in weights(trainer)},
        "rng": trainer.rng.bit_generator.state,
        "baselines": {key: past.tobytes() for key, past in trainer.baselines.past.items()},
        "counted": (trainer.updates, trainer.episodes, trainer.evaluations, trainer.best),
    }


def weights(trainer):
    return trainer.policy.state_dict().items()


def told(reports):
    """Reports without how fast it was."""
    names = [each.name for each in fields(reports[0]) if each.name != "steps_per_second"]
    return [[getattr(report, name) for name in names] for report in reports]


@pytest.fixture(scope="module", params=AGENTS)
def alone(request):
    """What one process comes to."""
    problems, config = AGENTS[request.param]
    trainer = Trainer(problems, config)
    reports = [trainer.step() for _ in range(config.updates)]
    return problems, config, outcome(trainer), told(reports)


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_any_number_of_workers_comes_to_the_same(alone, workers):
    problems, config, expected, reports = alone
    trainer = SynchronousTrainer(problems, config, players=players(problems, config, workers))
    assert told([trainer.step() for _ in range(config.updates)]) == reports
    assert outcome(trainer) == expected


def test_the_number_of_workers_may_change_on_the_way(alone):
    problems, config, expected, _ = alone
    state = None
    for workers in (2, 4, 1, 3):
        crew = players(problems, config, workers)
        trainer = SynchronousTrainer(problems, config, players=crew)
        if state is not None:
            trainer.restore(state)
        trainer.step()
        state = trainer.state()
    assert outcome(trainer) == expected


def test_all_workers_have_a_share_and_the_same_weights():
    problems, config = AGENTS["placeto-2019"]
    crew = players(problems, config, 3)
    trainer = SynchronousTrainer(problems, config, players=crew)
    trainer.step()
    assert [share.wanted.part for share in crew.items] == [slice(0, 1), slice(1, 3), slice(3, 5)]
    assert {share.wanted.episodes for share in crew.items} == {5}
    before = Trainer(problems, config)
    for share in crew.items:
        assert all(torch.equal(share.weights[name], value) for name, value in weights(before))


def test_episodes_start_where_the_trainer_says():
    problems, config = AGENTS["placeto-2019"]
    start = np.ones(problems[0].num_groups, dtype=np.int64)
    trainers = [
        Trainer(problems, config),
        SynchronousTrainer(problems, config, players=players(problems, config, 2)),
    ]
    for trainer in trainers:
        trainer.start_from(0, start)
        trainer.step()
    assert outcome(trainers[0]) == outcome(trainers[1])
    greedy = [trainer.roll_out(1, episodes=3, greedy=True) for trainer in trainers]
    assert np.array_equal(greedy[0].devices, greedy[1].devices)


@given(st.integers(1, 40), st.integers(1, 12))
def test_shares_are_all_episodes_once_and_almost_equal(episodes, workers):
    whole = Share({}, {}, Wanted(0, episodes))
    parts = [range(episodes)[share.wanted.part] for share in shares(whole, workers)]
    assert [episode for part in parts for episode in part] == [*range(episodes)]
    sizes = {len(part) for part in parts}
    assert len(parts) == min(workers, episodes)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", AGENTS)
def test_parts_together_are_the_whole(name):
    problems, config = AGENTS[name]
    agent = Trainer(problems, config).agent

    def play(part):
        return agent.roll_out(Wanted(0, 5, part), np.random.default_rng(7))

    whole = play(slice(0, 5))
    parts = [play(slice(0, 2)), play(slice(2, 3)), play(slice(3, 5))]
    assert [len(part.devices) for part in parts] == [2, 1, 2]
    assert_same(joined(parts), whole)


def assert_same(one, other):
    assert type(one) is type(other)
    names = getattr(one, "_fields", None) or [each.name for each in fields(one)]
    for name in names:
        value, expected = getattr(one, name), getattr(other, name)
        if isinstance(expected, np.ndarray | torch.Tensor):
            assert value.dtype == expected.dtype
            assert np.array_equal(np.asarray(value), np.asarray(expected)), name
        else:
            assert_same(value, expected)
