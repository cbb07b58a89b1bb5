"""What a trained policy finds: as it is, and trained further on the problem."""

import sys
from dataclasses import replace
from functools import cache, partial

import numpy as np

from placeto.heuristics.initial import single_devices
from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig
from placeto.models.stored import Trained
from placeto.placers.learned import trainer_for
from placeto.search.incumbent import Incumbent
from placeto.search.policy import FOUR_SWEEPS, few_groups, offer_drawn, offer_greedy, scattered
from placeto.search.settings import COARSE_GROUPS
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable


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
            random placement, as those of the placer do.

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
    return _train(incumbent, replace(trained.config, seed=seed), placements, trained)


def place_from_scratch(
    incumbent: Incumbent, config: LearningConfig, seed: int, placements: int
) -> Trained:
    """Trains a fresh policy on the problem alone, for so many episodes; see `place_fine_tuned`."""
    return _train(incumbent, replace(config, seed=seed), placements)


def _train(
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
