"""Placing by agents: trained on the problem, trained before, or trained further."""

import contextlib
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TypeVar

import numpy as np

from placeto.heuristics.initial import single_devices
from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig, OneShotConfig
from placeto.models.stored import Trained, check_shape
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.search.policy import FOUR_SWEEPS, few_groups, offer_drawn, offer_greedy, scattered
from placeto.search.repair import offer_repaired
from placeto.search.settings import COARSE_GROUPS
from placeto.simulation import Outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable
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

    Episodes of agents that start somewhere start at `start`. A policy of the same agent, if there
    is one, is trained further, with the network that it has.

    Raises:
        PlacetoError: the trained policy does not fit the problem.
    """
    if trained is not None:
        config = replace(config, **trained.config.part(agent_of(config).network))

    def take(problem: PlacementProblem, devices: Ints, outcomes: Outcomes) -> None:
        if problem.objective == "step-time":
            incumbent.take(devices, outcomes)
        else:  # it learns by step times, and is judged by this
            incumbent.offer_many(devices)
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
    config = for_few_groups(config, incumbent.problem.num_groups, enough)
    train_until_spent(incumbent, replace(config, seed=int(rng.integers(2**31))))


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
    trained: Trained | None = None,
    train: Callable[[Incumbent, Config, Trained | None, float], None] = train_once,
    several: bool = True,
) -> None:
    """Trains until the budget is spent, once or several times.

    Where there are few groups one training ends soon, and not always near the best placement: there
    are `several` from fresh weights, in equal parts of the time, unless a policy was `trained`
    before. `train(incumbent, config, trained, end)` trains once, to `end` in the incumbent's
    seconds.
    """
    few = incumbent.problem.num_groups < FEW_GROUPS
    trainings = TRAININGS if few and several and trained is None else 1
    with contextlib.suppress(BudgetSpent):
        for number in range(trainings):
            end = (number + 1) / trainings * incumbent.budget_seconds
            train(incumbent, replace(config, seed=config.seed + number), trained, end)


def place_zero_shot(
    incumbent: Incumbent, trained: Trained, seed: int, samples: int = 1, refined: bool = False
) -> None:
    """Offers what the policy finds without any training on the problem.

    A policy that guides does what the placer `placeto` does before it trains: greedy sweeps while
    they improve, from the best device, then sampled ones. Another one plays an episode.

    Args:
        incumbent: what is offered to.
        trained: the policy.
        seed: where the random numbers of what is sampled start.
        samples: how many episodes, one of them greedy.
        refined: whether sampled episodes go on for three more sweeps, every other one from a
            random placement, as the placer's do.

    Raises:
        PlacetoError: the policy does not fit the problem.
        NotApplicable: further sweeps are asked of a policy that guides no search.
    """
    guide, drawn = trained.agent.guide, samples - 1
    if guide is None:
        if refined:
            raise NotApplicable(
                "further sweeps refine what a policy finds that guides; "
                f"{trained.agent.name} does not"
            )
        trainer = trainer_for(incumbent, replace(trained.config, seed=seed), trained=trained)
        trainer.roll_out(0, episodes=1, greedy=True)
        if drawn > 0:
            trainer.roll_out(0, episodes=drawn)
        return
    ready_for = cache(partial(guide, trained.policy))
    with few_groups(incumbent, COARSE_GROUPS) as (few, refine):
        ready, single, rng = ready_for(few.problem), _best_device(few), np.random.default_rng(seed)
        offer_greedy(few, ready, single)
        refine(ready_for)
        if drawn and refined:
            offer_drawn(few, ready, scattered(few.problem, single, rng, drawn), rng, FOUR_SWEEPS)
        elif drawn:
            offer_drawn(few, ready, np.tile(single, (drawn, 1)), rng)
        refine(ready_for)


def place_fine_tuned(incumbent: Incumbent, trained: Trained, seed: int, placements: int) -> Trained:
    """Trains the policy further on the problem; offers what it finds before, meets, and ends with.

    A policy that guides is trained on many groups with several placed together, as it places them.
    There are as many episodes as `placements`, in which they end, rounded up to whole updates.

    Returns:
        The policy as it is after that; the one given stays as it is.

    Raises:
        PlacetoError: the policy does not fit the problem.
    """
    place_zero_shot(incumbent, trained, seed)
    return _train_for(incumbent, replace(trained.config, seed=seed), placements, trained)


def place_from_scratch(
    incumbent: Incumbent, config: LearningConfig, seed: int, placements: int
) -> Trained:
    """Trains a fresh policy on the problem alone, for so many episodes; see `place_fine_tuned`."""
    return _train_for(incumbent, replace(config, seed=seed), placements)


def _train_for(
    incumbent: Incumbent, config: LearningConfig, placements: int, trained: Trained | None = None
) -> Trained:
    guide = agent_of(config).guide
    with few_groups(incumbent, COARSE_GROUPS if guide else sys.maxsize) as (few, refine):
        trainer = trainer_for(few, config, trained=trained)
        before = few.evaluations
        while trainer.episodes < placements:
            trainer.step(trainer.episodes / placements)
            few.evaluations = before + trainer.evaluations
        if guide is not None:
            ready_for = partial(guide, trainer.policy)
            offer_greedy(few, ready_for(few.problem), _best_device(few))
            refine(ready_for)
        else:
            trainer.roll_out(0, episodes=1, greedy=True)
    return Trained(trainer.policy, trainer.config, {})


def _best_device(incumbent: Incumbent) -> Ints:
    """(num_groups,) the best single device, after all of them were offered."""
    singles = single_devices(incumbent.problem)
    outcomes = incumbent.offer_many(singles)
    return singles[np.lexsort((outcomes.step_time, ~outcomes.feasible))[0]]
