"""Placeto as in its paper: an agent trained on the graph that it places."""

import contextlib
import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np

from placeto.heuristics.initial import random_placement
from placeto.models.stored import Trained, load_trained
from placeto.placers import learned
from placeto.placers.configs import Placeto2019PlacerConfig
from placeto.search.incumbent import Incumbent
from placeto.search.repair import offer_heuristic
from placeto.search.settings import NO_POLICY
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.units import format_seconds
from placeto.training.run import progress_line
from placeto.training.trainer import check_size

STARTS = ("single", "expert", "etf")
TRAINING_SHARE = 0.75
UPDATES_A_START = 20
MOVES = 4
ENOUGH_GROUPS = 32


def place_placeto_2019(
    incumbent: Incumbent, rng: np.random.Generator, config: Placeto2019PlacerConfig
) -> None:
    """Trains Placeto's agent (Addanki et al. 2019, arXiv:1906.08879) on the problem.

    Episodes start from the best placement known: at first the best of one device, the expert's
    and earliest finish, then, every 20 updates, the best that was met on the way. Once 75% of the
    budget is spent on training, the policy as it is goes on from there, sweep after sweep; of few
    groups, every second sweep starts at random. The paper starts from one placement throughout;
    moving on did better in one trial a graph. With an `initial_placement` other than `best` it is
    as in the paper: episodes start there, no other placement is offered at first, and the whole
    budget is training. A policy that was trained before is first played as it is.

    The config has the paper's ablations; its schedules follow the clock.

    Raises:
        PlacetoError: more groups than an episode can go through in reasonable time, or a policy
            that does not fit the problem.
    """
    check_size(incumbent.problem)
    config = replace(config, seed=int(rng.integers(2**31)))
    trained = None if config.policy == NO_POLICY else load_trained(config.policy)
    if trained is not None and trained.agent.name != "placeto-2019":
        raise PlacetoError(
            f"{config.policy}: is a policy of {trained.agent.name}; placeto-2019 takes one of "
            "`placeto train --agent placeto-2019`"
        )
    with contextlib.suppress(learned.BudgetSpent):
        if trained is not None:
            learned.place_zero_shot(incumbent, trained, config.seed)
        if config.initial_placement != "best":
            learned.train_until_spent(incumbent, config, trained, several=False)
            return
        for name in STARTS:
            offer_heuristic(incumbent, rng, name)
        train = partial(_train_and_improve, start=incumbent.best)
        learned.train_until_spent(incumbent, config, trained, train)


def _train_and_improve(
    incumbent: Incumbent,
    config: Placeto2019PlacerConfig,
    trained: Trained | None,
    end: float,
    start: Ints,
) -> None:
    """Trains, then lets the policy go on, until so many seconds have passed for the incumbent.

    The logit of a group's present device is raised by no more than lets an untrained episode move
    4 groups: it would move hardly one, and what takes several moves at once would not be met. Below
    32 groups the entropy bonus goes up, too.
    """
    begin, problem = incumbent.seconds, incumbent.problem
    training_seconds = TRAINING_SHARE * (end - begin)
    odds = (problem.num_devices - 1) * (problem.num_groups / MOVES - 1)
    config = replace(
        config,
        keep=min(config.keep, math.log(max(odds, 1))),
        entropy_bonus=max(ENOUGH_GROUPS / problem.num_groups, 1) ** 1.5 * config.entropy_bonus,
        initial_placement="first",  # every episode is told where it starts
    )
    trainer = learned.trainer_for(incumbent, config, start, trained)
    while (spent := incumbent.seconds - begin) < training_seconds:
        if trainer.updates and trainer.updates % UPDATES_A_START == 0:
            trainer.start_from(0, incumbent.best)
        report = trainer.step(spent / training_seconds)
        now = incumbent.seconds
        incumbent.learning.append((now, report.step_time))
        incumbent.progress(progress_line(report, incumbent.budget_seconds - now))
    for sweep in itertools.count():
        if incumbent.seconds >= end:
            return
        start = incumbent.best
        if (
            problem.num_groups < ENOUGH_GROUPS and sweep % 2
        ):  # their best known is soon one that no sweep improves
            start = random_placement(problem, trainer.rng)
        trainer.roll_out(0, episodes=config.episodes, start=start)
        incumbent.progress(f"improving: best {format_seconds(incumbent.step_time)}")
