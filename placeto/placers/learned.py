"""What the placers that train an agent on their problem have in common."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig, OneShotConfig
from placeto.models.stored import Trained, check_shape
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.search.repair import offer_repaired
from placeto.simulation import Outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.training.run import progress_line
from placeto.training.trainer import Trainer, check_size

SCHEDULED_SHARE = 0.8
FEW_GROUPS = 32
TRAININGS = 4  # of few groups

Config = TypeVar("Config", bound=LearningConfig)


class BudgetSpent(Exception):  # noqa: N818 (it is not an error)
    """Raised in the middle of an episode or a gradient step when the budget is spent."""


def trainer_for(
    incumbent: Incumbent,
    config: LearningConfig,
    start: Ints | None = None,
    trained: Trained | None = None,
) -> Trainer:
    """A trainer that offers every placement it evaluates; `BudgetSpent` ends it in the middle.

    Args:
        incumbent: what is offered to.
        config: how to train, and which agent.
        start: (num_groups,) where episodes start, for agents that start somewhere.
        trained: a policy of the same agent that is trained further, with the network that it has.

    Raises:
        PlacetoError: the trained policy does not fit the problem.
    """
    if trained is not None:
        config = replace(config, **trained.config.part(agent_of(config).network))

    def take(problem: PlacementProblem, devices: Ints, outcomes: Outcomes) -> None:
        incumbent.take(devices, outcomes)
        stop_when_spent()

    def stop_when_spent() -> None:
        if incumbent.expired:
            raise BudgetSpent

    problem = incumbent.problem
    trainer = Trainer([problem], config, simulate_many, take, starts=[start], tick=stop_when_spent)
    if trained is None:
        return trainer
    check_shape(trained, trainer.policy.config.to_document(), problem)
    trainer.policy.load_state_dict(trained.policy.state_dict())
    return trainer


def place_at_once(
    incumbent: Incumbent, rng: np.random.Generator, config: OneShotConfig, enough: int
) -> None:
    """Trains an agent that places all groups at once until the budget is spent.

    From `enough` groups on its settings are left as they are; see `for_few_groups`.

    Raises:
        PlacetoError: more groups than the network can go through in reasonable time.
    """
    check_size(incumbent.problem)
    groups = incumbent.problem.num_groups
    config = replace(for_few_groups(config, groups, enough), seed=int(rng.integers(2**31)))
    train_until_spent(incumbent, config, how_many_trainings(groups))


def for_few_groups(config: Config, num_groups: int, enough: int) -> Config:
    """The configuration with more episodes an update where there are fewer groups than enough.

    All of them together have as many groups then as a usual update's, which costs hardly more;
    learning rate and entropy bonus go up with the square root of their number. Without that the
    policy often settles on a placement that few steps lead to, such as one device.
    """
    more = max(enough / num_groups, 1)
    return replace(
        config,
        episodes=round(more * config.episodes),
        baseline_episodes=round(more * config.baseline_episodes),
        learning_rate=math.sqrt(more) * config.learning_rate,
        final_learning_rate=math.sqrt(more) * config.final_learning_rate,
        entropy_bonus=math.sqrt(more) * config.entropy_bonus,
    )


def how_many_trainings(num_groups: int) -> int:
    """Several where there are few groups: one ends soon, and not always near the best placement."""
    return TRAININGS if num_groups < FEW_GROUPS else 1


def train_once(
    incumbent: Incumbent, config: LearningConfig, trained: Trained | None, end: float
) -> None:
    """Trains an agent, from fresh weights or from a policy's, until so many seconds have passed.

    Its schedules follow the clock and end once 80% of that is over: what a policy has learned shows
    when it is no longer paid for its entropy. There is at least one update.

    Where nothing of the first update fits in memory, the best of it is repaired, so that there is
    a placement that can be used while the agent learns what fits.
    """
    begin = incumbent.seconds
    scheduled_seconds = max(SCHEDULED_SHARE * (end - begin), 1e-9)
    trainer = trainer_for(incumbent, config, trained=trained)
    while incumbent.seconds < end or not trainer.updates:
        report = trainer.step((incumbent.seconds - begin) / scheduled_seconds)
        now = incumbent.seconds
        incumbent.learning.append((now, report.step_time))
        incumbent.progress(progress_line(report, incumbent.budget_seconds - now))
        if trainer.updates == 1 and not incumbent.feasible:
            offer_repaired(incumbent, incumbent.best)


def train_until_spent(
    incumbent: Incumbent,
    config: Config,
    trainings: int,
    trained: Trained | None = None,
    train: Callable[[Incumbent, Config, Trained | None, float], None] = train_once,
) -> None:
    """Trains so often, each time with another seed and an equal part of the budget."""
    with contextlib.suppress(BudgetSpent):
        for number in range(trainings):
            end = (number + 1) / trainings * incumbent.budget_seconds
            train(incumbent, replace(config, seed=config.seed + number), trained, end)
