"""The agent: its gradient, what it learns, and runs that are continued."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from placeto import Cluster, PlacementProblem, load_cluster, load_graph
from placeto.envs import generator
from placeto.heuristics.initial import all_on
from placeto.models.placeto.agent import PlacetoAgent
from placeto.models.placeto.scoring import read_placeto
from placeto.models.placeto.settings import PlacetoConfig
from placeto.simulation import step_times
from placeto.training import Trainer, train
from tests.builders import make_cluster
from tests.training.test_run import content, interrupt_at
from tests.training.test_trainer import TOYS, best_step_time, goes_to

SMALL = dict(hidden=16, embedding=4, width=8, rounds=2, episodes=8)


def best_placement(problem):
    """Of all placements, one by one."""
    every = itertools.product(range(problem.num_devices), repeat=problem.num_groups)
    placements = np.array(list(every))
    return placements[step_times(problem, placements).argmin()]


def steps(trainer):
    return [trainer.step() for _ in range(trainer.config.updates)]


@pytest.fixture(scope="module")
def every_episode():
    """A policy, and of each of the 16 placements on two unequal devices the episode to it."""
    problem = generator.unequal()
    torch.manual_seed(1)
    config = PlacetoConfig(**SMALL)
    agent = PlacetoAgent([problem], config)
    torch.nn.init.normal_(agent.network.last.weight)
    lessons = [
        PlacetoAgent([problem], config, teacher=lambda _, taught=taught: taught).lesson(0, 0, 0.0)
        for taught in np.array(list(itertools.product(range(2), repeat=4)))
    ]
    return agent, lessons


def log_of_episodes(agent, lessons):
    """(episodes,) log-probability of the first episode of each lesson, from one device."""
    logs = []
    for lesson in lessons:
        taken, _ = agent.terms(0, lesson, slice(None))
        logs.append(taken.view(lesson.actions.shape)[:, 0].sum())
    return torch.stack(logs)


def test_chances_of_all_episodes_add_up_to_one(every_episode):
    agent, lessons = every_episode
    chances = log_of_episodes(agent, lessons).exp()
    assert chances.min() > 0
    assert float(chances.detach().sum()) == pytest.approx(1, rel=1e-5)


def test_the_gradient_of_the_expected_reward_equals_finite_differences(every_episode):
    agent, lessons = every_episode
    rewards = torch.tensor([lesson.rewards[:, 0].sum() for lesson in lessons], dtype=torch.float32)
    parameters = list(agent.network.parameters())

    def expected_reward():
        return (log_of_episodes(agent, lessons).exp() * rewards).sum()

    # REINFORCE, with each episode as often as it is likely.
    logs = log_of_episodes(agent, lessons)
    gradient = torch.autograd.grad((logs * logs.detach().exp() * rewards).sum(), parameters)
    assert all(part.abs().max() > 0 for part in gradient)
    rng = torch.Generator().manual_seed(0)
    for _ in range(6):
        # A random direction that the gradient is not at right angles to.
        along = [
            part / sum(p.square().sum() for p in gradient).sqrt()
            + 0.05 * torch.randn(part.shape, generator=rng)
            for part in gradient
        ]
        found = []
        for sign in (1, -1):
            with torch.no_grad():
                for parameter, part in zip(parameters, along, strict=True):
                    parameter += sign * 1e-2 * part
                found.append(float(expected_reward()))
                for parameter, part in zip(parameters, along, strict=True):
                    parameter -= sign * 1e-2 * part
        slope = (found[0] - found[1]) / 2e-2
        expected = sum(float((g * a).sum()) for g, a in zip(gradient, along, strict=True))
        assert slope == pytest.approx(expected, rel=0.05)


def test_entropy_is_that_of_the_open_devices(every_episode):
    _, lessons = every_episode
    fresh = PlacetoAgent([generator.unequal()], PlacetoConfig(**SMALL))
    _, entropy = fresh.terms(0, lessons[3], slice(None))
    choices = lessons[3].open.reshape(-1, 2).sum(axis=1)
    assert entropy.tolist() == pytest.approx(np.log(choices), abs=1e-6)


@pytest.fixture(scope="module")
def imitator():
    """Trained on all toys at once to go from one device to their best placements."""
    torch.manual_seed(0)
    config = PlacetoConfig(
        **SMALL, updates=160, imitation=1.0, algorithm="ppo", learning_rate=1e-2,
        final_learning_rate=1e-3,
    )  # fmt: skip
    trainer = Trainer([toy() for toy in TOYS], config, teacher=best_placement)
    before = chance_of_lessons(trainer)
    steps(trainer)
    return trainer, before


def chance_of_lessons(trainer):
    """Mean chance of what the teacher does at a step."""
    with torch.no_grad():
        logs = [
            trainer.agent.terms(index, trainer.agent.lesson(index, 0, 0.0), slice(None))[0]
            for index in range(len(trainer.problems))
        ]
    return float(torch.cat(logs).exp().mean())


def test_imitation_makes_what_the_teacher_does_likelier(imitator):
    trainer, before = imitator
    after = chance_of_lessons(trainer)
    assert before < 0.75
    assert after > 0.8


def test_greedy_episodes_reproduce_what_was_imitated(imitator):
    trainer, _ = imitator
    for index, problem in enumerate(trainer.problems):
        played = trainer.roll_out(index, episodes=1, greedy=True)
        assert played.step_time[0] == pytest.approx(best_step_time(problem), rel=1e-9)


def test_lessons_end_in_the_placement_that_is_imitated(imitator):
    trainer, _ = imitator
    for index, problem in enumerate(trainer.problems):
        for number in range(trainer.config.lessons):
            lesson = trainer.agent.lesson(index, number, 0.0)
            assert lesson.actions.shape == (problem.num_groups, 4)
            assert lesson.step_time == pytest.approx([best_step_time(problem)] * 4)
            assert np.take_along_axis(lesson.open, lesson.actions[:, :, None], axis=2).all()
        assert trainer.agent.lesson(index, number + 1, 0.0) is trainer.agent.lesson(index, 0, 0.0)
        assert trainer.agent.lesson(index, 0, trainer.config.imitation) is None


def test_what_was_learned_on_two_devices_holds_on_others(imitator):
    trainer, _ = imitator
    fork, unequal = generator.fork(), generator.unequal()
    three = PlacementProblem(fork.graph, three_slow(), "none")
    swapped = Cluster("swapped", unequal.cluster.devices[::-1], unequal.cluster.channels)
    for problem in (three, PlacementProblem(unequal.graph, swapped, "none")):
        other = Trainer([problem], trainer.config)
        other.policy.load_state_dict(trainer.policy.state_dict())
        singles = [all_on(problem, device) for device in range(problem.num_devices)]
        assert goes_to(other) < step_times(problem, np.array(singles)).min()


def three_slow():
    cluster = make_cluster(3, bandwidth=1e9)
    return replace(
        cluster, devices=tuple(replace(device, kind="slow") for device in cluster.devices)
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("toy", TOYS)
def test_reinforcement_finds_the_best_placement(toy, seed):
    config = PlacetoConfig(
        **SMALL, updates=60, seed=seed, algorithm="ppo", learning_rate=1e-2,
        final_learning_rate=1e-3, entropy_bonus=0.3, baseline_episodes=32,
    )  # fmt: skip
    trainer = Trainer([toy()], config)
    steps(trainer)
    assert goes_to(trainer) == pytest.approx(best_step_time(trainer.problems[0]), rel=1e-9)


def test_pins_and_missing_kernels_are_obeyed():
    problem = PlacementProblem(
        load_graph("nmt"), load_cluster("k80x4-cpu"), 12, pins={0: 3, 5: 1, 7: 4}
    )
    seen = []
    trainer = Trainer(
        [problem],
        PlacetoConfig(updates=2, **SMALL, sweeps=2),
        visit=lambda problem, devices, outcomes: seen.append(devices.copy()),
    )
    played = trainer.roll_out(0, episodes=8)
    assert len(played.current) == 24
    placements = np.concatenate([*seen, played.devices])
    assert (placements[:, [0, 5, 7]] == [3, 1, 4]).all()
    assert problem.allowed[np.arange(problem.num_groups), placements].all()


RUN = PlacetoConfig(
    **SMALL, updates=8, imitation=0.5, checkpoint_every=3, lessons=2, algorithm="ppo", epochs=2
)
PROBLEMS = [generator.fork(), generator.diamond(), generator.unequal()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    train(PROBLEMS, RUN, directory, teacher=best_placement)
    # Four updates imitate, four reinforce.
    assert [line["evaluations"] > 0 for line in content(directory)["metrics"]] == (
        [False] * 4 + [True] * 4
    )
    return content(directory)


@pytest.mark.parametrize("update", [1, 3, 4, 6])
def test_a_run_that_is_continued_is_the_run_that_was_not_stopped(tmp_path, whole, update):
    with pytest.raises(KeyboardInterrupt):
        train(PROBLEMS, RUN, tmp_path, teacher=best_placement, progress=interrupt_at(update))
    assert torch.load(tmp_path / "trainer.pt", weights_only=True)["updates"] == update
    assert read_placeto(tmp_path).card["updates"] == update
    train(PROBLEMS, RUN, tmp_path, teacher=best_placement)
    assert content(tmp_path) == whole
