"""Simulated annealing over placements."""

import math
from functools import cache

import numpy as np

from placeto.cluster import load_cluster
from placeto.graph import Floats, Ints
from placeto.objective import search_costs
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.search.moves import neighbourhood, propose_many
from placeto.search.settings import AnnealingConfig
from placeto.search.starts import offer_starts
from placeto.support.units import format_seconds
from placeto.zoo.synthetic import synthetic_graph

REPORTS = 100  # lines of progress in the whole budget
# Of fewer groups, each is a larger share of the step: the search is as much hotter.
TEMPERATE_GROUPS = 100
PREPARING_EVALUATIONS = 200


def anneal(incumbent: Incumbent, rng: np.random.Generator, config: AnnealingConfig) -> None:
    """Simulated annealing (Kirkpatrick, Gelatt & Vecchi 1983), restarted some times.

    It starts from the best of one device, the expert's placement, earliest finish and HEFT; the
    last time from the best placement found, less hot. In each step several neighbours of the
    present placement are simulated over all cores, each by one of the moves of `Move`; of those
    that the rule of Metropolis et al. (1953) accepts, the one that costs least is the next. A
    placement costs its step time and, where it does not fit, so much more that the search leaves
    it soon. The temperature falls with the budget: with the clock, or with the placements
    simulated if these are limited, and then the result depends on the generator alone.

    Args:
        incumbent: what is offered to.
        rng: draws the moves.
        config: settings.
    """
    problem = incumbent.problem
    offer_starts(incumbent, rng)
    incumbent.part = ""
    space = neighbourhood(problem)
    if len(space.movable) <= 1:  # every placement is among the starts
        return
    scale = incumbent.step_time or 1.0
    heat = scale * max(TEMPERATE_GROUPS / problem.num_groups, 1.0)
    start = present, cost = _best(incumbent, scale)
    candidates = np.empty((config.candidates, problem.num_groups), dtype=np.int64)
    stage = reports = 0
    limit = config.max_evaluations
    while (spent := incumbent.share_spent(limit)) < 1 and not incumbent.expired:
        number, temperature = config.stage(spent)
        if number > stage:
            stage = number
            present, cost = start if number < config.restarts else _best(incumbent, scale)
        propose_many(space, present, candidates, rng)
        found = incumbent.offer_many(candidates)
        costs = search_costs(problem, found.step_time, found.peak_memory, scale)
        taken = accepted(costs - cost, heat * temperature, rng.random(len(candidates)))
        if taken is not None:
            present, cost = candidates[taken].copy(), costs[taken]
        if spent * REPORTS >= reports:
            reports = int(spent * REPORTS) + 1
            incumbent.progress(
                f"annealing: {spent:.0%} of the budget, best {format_seconds(incumbent.step_time)}"
            )


@cache
def prepare() -> None:
    """Runs all of it once, on a small problem, so that it is compiled, or read from the cache."""
    problem = PlacementProblem(synthetic_graph("layered", 0, "small"), load_cluster("k80x2"))
    config = AnnealingConfig(max_evaluations=PREPARING_EVALUATIONS)
    anneal(Incumbent(problem, math.inf), np.random.default_rng(0), config)


def accepted(rises: Floats, temperature: float, draws: Floats) -> int | None:
    """The cheapest of the candidates that Metropolis's rule accepts.

    Args:
        rises: (candidates,) seconds that each costs more than the present placement.
        temperature: seconds.
        draws: (candidates,) uniform numbers from [0, 1).

    Returns:
        Which; None if the rule accepts none.
    """
    passed = draws < np.exp(-np.maximum(rises, 0.0) / temperature)
    if not passed.any():
        return None
    return int(np.where(passed, rises, np.inf).argmin())


def _best(incumbent: Incumbent, scale: float) -> tuple[Ints, Floats]:
    """The best placement so far and what it costs."""
    assert incumbent.devices is not None and incumbent.peak_memory is not None
    return incumbent.devices, search_costs(
        incumbent.problem, np.float64(incumbent.step_time), incumbent.peak_memory, scale
    )
