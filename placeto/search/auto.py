"""The search: heuristics, then a trained policy, then annealing from the best of both."""

import math
import time
from dataclasses import replace
from functools import cache

import numpy as np

from placeto.cluster import load_cluster
from placeto.heuristics.initial import single_devices
from placeto.models.placeto.play import CompiledPolicy
from placeto.problem import Objective, PlacementProblem
from placeto.search.chains import anneal
from placeto.search.incumbent import Incumbent, beside_incumbent, coarser_incumbent
from placeto.search.policy import compiled_policy, offer_drawn, offer_greedy, stored
from placeto.search.repair import offer_starts
from placeto.search.settings import NO_POLICY, SHIPPED, USUAL_POLICY, SearchConfig
from placeto.support.errors import PlacetoError
from placeto.zoo.synthetic import synthetic_graph

# Of what is left of the budget, at most, for the first greedy sweep, and for drawn ones.
GREEDY_SHARE, DRAWN_SHARE = 0.3, 0.2
PREPARING_EVALUATIONS = 5000


def search(incumbent: Incumbent, rng: np.random.Generator, config: SearchConfig) -> None:
    """Heuristics and a policy for a first answer, then annealing until the budget ends.

    The best device, the expert's placement, earliest finish and HEFT; the policy's greedy sweeps
    from the fastest device, whether or not it has the memory, and some whose devices are drawn;
    then the chains of `anneal`, from the best of these. It is never worse than the heuristics and
    the greedy sweeps, as far as the budget lets these begin and end.

    Where there are many groups, after the heuristics all of this is first done with fewer, of
    several groups each, and with fewer still before that, as multilevel partitioners do (Karypis &
    Kumar 1998): moves of single groups would take long to get anywhere, and sweeps of the policy,
    which has learned with few groups, would find less. Then the chains go on with the groups as
    they are, less hot. Without a policy and fewer groups it is simulated annealing alone. Where
    the incumbent `refines`, these last chains are all there is.

    Where a device is faster alone, single devices are offered first, and what else there is is
    looked for without that advantage (see `beside_incumbent`).

    Raises `PlacetoError` if there is no such policy.
    """
    if (incumbent.problem.alone < 1).any():
        _search_beside(incumbent, rng, config)
        return
    refines = incumbent.refines
    if not refines and not offer_starts(incumbent, rng, max_evaluations=config.max_evaluations):
        return
    many = config.coarse_groups is not None and incumbent.problem.num_groups > config.coarse_groups
    if many and not refines:
        _place_coarsely(incumbent, rng, config)
    if many or refines:
        config = replace(config, first_temperature=config.refining_temperature)
    elif (ready := _policy(incumbent, config)) is not None:
        incumbent.part = "placeto"
        _offer_policy(incumbent, ready, rng, config)
    incumbent.part = "search"
    anneal(incumbent, rng, config)


def _search_beside(incumbent: Incumbent, rng: np.random.Generator, config: SearchConfig) -> None:
    """Single devices, and all of `search` as if none of them were faster alone."""
    incumbent.part = "single"
    incumbent.offer_many(single_devices(incumbent.problem))
    count = config.max_evaluations
    if incumbent.share_spent(count) < 1 and not incumbent.expired:
        with beside_incumbent(incumbent) as beside:
            if count is not None:
                left = count - incumbent.evaluations
                config = replace(config, max_evaluations=beside.evaluations + left)
            search(beside, rng, config)


def _place_coarsely(incumbent: Incumbent, rng: np.random.Generator, config: SearchConfig) -> None:
    """Does all of `search` with fewer groups, for a share of what is left of the budget."""
    share, count, least = config.coarse_share, config.max_evaluations, config.coarse_groups
    assert least is not None
    if count is not None:
        count = max(int(share * (count - incumbent.evaluations)), 1)
    wanted = max(int(incumbent.problem.num_groups / config.coarse_ratio), least)
    with coarser_incumbent(incumbent, wanted, share) as coarse:
        # What joins no groups that differ in their devices may leave more groups than wanted.
        groups = coarse.problem.num_groups
        if wanted == least or groups > wanted:
            least = max(least, groups)
        search(coarse, rng, replace(config, coarse_groups=least, max_evaluations=count))


@cache
def prepare(objective: Objective = "step-time") -> None:
    """Runs every part once, on a small problem, so that it is compiled, or read from the cache."""
    problem = replace(small_problem(), objective=objective)
    config = SearchConfig(
        max_evaluations=PREPARING_EVALUATIONS, coarse_groups=problem.num_groups // 2
    )
    # The policy last: another process may be compiling it.
    for each in (replace(config, policy=NO_POLICY, coarse_groups=None), config):
        search(Incumbent(problem, math.inf), np.random.default_rng(0), each)


def small_problem() -> PlacementProblem:
    """One that takes no time, on which everything there is to compile is used."""
    return PlacementProblem(synthetic_graph("layered", 0, "small"), load_cluster("k80x2"))


def _policy(incumbent: Incumbent, config: SearchConfig) -> CompiledPolicy | None:
    """The policy made ready; None where it is not wanted, or where none ships.

    It knows nothing of throughput.
    """
    problem = incumbent.problem
    if config.policy == NO_POLICY or problem.objective == "throughput":
        return None
    if config.policy == USUAL_POLICY and problem.graph.num_microbatches > 1:
        return None
    try:
        name = SHIPPED if config.policy == USUAL_POLICY else config.policy
        return compiled_policy(stored(name), problem)
    except PlacetoError as error:
        if config.policy != SearchConfig.policy:
            raise
        incumbent.progress(f"searching without a policy: {error}")
        return None


def _offer_policy(
    incumbent: Incumbent, ready: CompiledPolicy, rng: np.random.Generator, config: SearchConfig
) -> None:
    problem = incumbent.problem
    singles = single_devices(problem)
    began = time.perf_counter()
    start = singles[int(incumbent.offer_many(singles).step_time.argmin())]
    one = (time.perf_counter() - began) / problem.num_devices

    def affordable() -> float:
        """How many sweeps there could be with what is left of the budget."""
        if config.max_evaluations is not None:
            return (config.max_evaluations - incumbent.evaluations) / problem.num_groups
        left = incumbent.budget_seconds - incumbent.seconds
        return left / max(problem.num_groups * one, 1e-9)

    if affordable() * GREEDY_SHARE >= 1:
        offer_greedy(incumbent, ready, start)
    samples = min(config.samples, int(affordable() * DRAWN_SHARE))
    if samples > 0:
        offer_drawn(incumbent, ready, np.tile(start, (samples, 1)), rng)
