"""Placeto: a policy trained beforehand, played on the graph and then trained further on it."""

import contextlib
import math
from dataclasses import replace
from functools import cache, partial

import numpy as np

from placeto.envs.features.pairs import TINY
from placeto.heuristics.initial import single_devices
from placeto.models.stored import load_policy, load_trained
from placeto.placers.configs import PlacetoPlacerConfig
from placeto.search import policy
from placeto.search.decoding import DECODINGS, Case, Draws
from placeto.search.incumbent import Incumbent
from placeto.search.settings import PIPELINED, SHIPPED, USUAL_POLICY
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.units import format_seconds

UPDATES_A_START = 4  # of fine-tuning, from one start
DISTURBED = 8  # episodes at once
DISTURBED_SHARE = 4.0  # of the seconds that the update before took


def place_placeto(
    incumbent: Incumbent, rng: np.random.Generator, config: PlacetoPlacerConfig
) -> None:
    """Plays a trained policy, then trains it further on the problem until the budget ends.

    It plays greedy sweeps from the best device while they improve, then episodes of four sweeps
    whose devices are drawn, from the best device or the best placement known and from random
    placements (`search.decoding.several_starts`); where another decoding is wanted, by that until
    the budget ends. Else it learns by reinforcement from its episodes on this problem alone, in
    turn from the best device and from the best placement known, as Placeto's agent does on the
    graph that it places (Addanki et al. 2019, arXiv:1906.08879). Between updates the policy as it
    is by then plays greedy sweeps from the best placement, and from that with a stretch of the
    groups moved elsewhere, over these and what is around them: an iterated local search whose
    descent is the policy's (Lourenço, Martin & Stützle 2003). A sweep that has begun is ended,
    whatever the budget. Of many groups, several are placed together, and what is found so is
    refined; see `few_groups`.

    Raises `PlacetoError` if there is no such policy.
    """
    if config.policy == USUAL_POLICY:
        pipelined = incumbent.problem.graph.num_microbatches > 1
        config = replace(config, policy=PIPELINED if pipelined else SHIPPED)
    ready_for = cache(partial(policy.compiled_policy, policy.stored(config.policy)))
    with policy.few_groups(incumbent, config.coarse_groups) as (few, refine):
        few.offer_many(single_devices(few.problem))
        single = few.best
        if few.expired:
            return
        policy.offer_greedy(few, ready_for(few.problem), single)
        refine(ready_for)
        if config.decoding == "greedy":
            return
        active = config.decoding == "active"
        until = few.seconds + (1 - config.fine_tune) * (few.budget_seconds - few.seconds)
        draws = Draws(
            config.samples, config.temperature, config.batches, until if active else math.inf
        )
        batches = 0

        def done() -> None:
            nonlocal batches
            batches += 1
            refine(ready_for)
            few.progress(f"placeto: {batches} batches, best {format_seconds(few.step_time)}")

        decode = DECODINGS["starts" if active else config.decoding]
        decode(Case(few, ready_for(few.problem), single, rng, draws, done))
        if config.trains and not few.expired:
            incumbent.learning += _fine_tune(incumbent, few, single, rng, config, refine)


@cache
def prepare() -> None:
    """Loads what a policy is trained with, which takes long."""
    with contextlib.suppress(PlacetoError):  # where no policy ships, the placer says so
        load_policy(SHIPPED)


def _fine_tune(
    incumbent: Incumbent,
    few: Incumbent,
    single: Ints,
    rng: np.random.Generator,
    config: PlacetoPlacerConfig,
    refine: policy.Refine,
) -> list[tuple[float, float]]:
    """Trains the policy on the problem until the budget is spent; see `Incumbent.learning`."""
    from placeto.placers.learned import BudgetSpent, trainer_for  # torch is slow to import

    trained = load_trained(config.policy)
    guide_of = trained.agent.guide
    assert guide_of is not None  # it has been played
    rate, seed = config.learning_rate, int(rng.integers(2**31))
    begun = before = few.seconds
    left = max(few.budget_seconds - begun, TINY)
    found: list[tuple[float, float]] = []
    with contextlib.suppress(BudgetSpent):
        # Without a teacher it imitates nobody.
        learning = replace(trained.config, seed=seed, learning_rate=rate)
        trainer = trainer_for(few, learning, start=single, trained=trained)
        ready_for = partial(guide_of, trainer.policy)
        while not few.expired:
            if trainer.updates % UPDATES_A_START == 0 and trainer.updates:
                later = trainer.updates // UPDATES_A_START % 2 == 1
                trainer.start_from(0, few.best if later else single)
                policy.offer_greedy(few, ready_for(few.problem), few.best)
                refine(ready_for)
            simulated, before = few.evaluations - trainer.evaluations, few.seconds
            report = trainer.step((few.seconds - begun) / left)
            few.evaluations = simulated + trainer.evaluations  # those on the way, too
            found.append((few.seconds, report.step_time))
            few.progress(f"placeto: {report.update} updates, best {format_seconds(few.step_time)}")
            until = incumbent.seconds + DISTURBED_SHARE * (few.seconds - before)
            ready = ready_for(incumbent.problem)
            while incumbent.seconds < until and not incumbent.expired:
                policy.offer_disturbed(incumbent, ready, rng, DISTURBED)
    return found
