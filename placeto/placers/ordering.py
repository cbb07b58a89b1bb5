"""Which order is best for a pipelined step, and one that is better still."""

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from placeto.objective import overflow
from placeto.order import ORDERS
from placeto.placement import Placement
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Clock
from placeto.search.ranks import move_ranks
from placeto.simulation import simulate, simulate_many
from placeto.support.errors import NotApplicable
from placeto.support.interrupts import interrupts

RANKED = ("auto", "annealing")  # whose placements `place` moves the ranks of
RANKS_SHARE = 0.1  # of the budget
_PROBES = ("single", "expert", "stages", "metis")
_PROBE_SECONDS = 2.0
# Of a search in each order: what heuristics find may be best in one in which nothing else is good.
_SEARCHER, _SEARCH_SECONDS = "annealing", 0.5


def ordered(problem: PlacementProblem, clock: Clock = time.monotonic) -> PlacementProblem:
    """The problem in the order in which the best that heuristics and a short search find is best.

    What fits in memory goes before what does not, then what takes least. A step of one microbatch
    stays as it is. The searches' seconds are the clock's, as in `place`.
    """
    if problem.graph.num_microbatches == 1:
        return problem
    found = []
    for method in _PROBES:
        with suppress(NotApplicable):
            found.append(place(problem, method, _PROBE_SECONDS, clock=clock).devices)

    def worth(ordered: PlacementProblem) -> tuple[float, float]:
        searched = place(ordered, _SEARCHER, _SEARCH_SECONDS, clock=clock).devices
        outcomes = simulate_many(ordered, np.stack([*found, searched]))
        over = overflow(ordered, outcomes.peak_memory).tolist()
        return min(zip(over, outcomes.step_time.tolist(), strict=True))

    return min((replace(problem, grouping=problem.op_group, order=o) for o in ORDERS), key=worth)


def reordered(
    placement: Placement,
    budget_seconds: float,
    seed: int = 0,
    max_evaluations: int | None = None,
) -> Placement:
    """The placement with the ranks of its ops moved, so that its step is faster.

    Every group stays where it is. Where nothing better is found, an op never ends, the step is of
    one microbatch, or the objective is throughput, which no order changes, it is the placement as
    it was; after an interrupt (Ctrl-C), too.

    Args:
        placement: whose problem has the order to begin with.
        budget_seconds: seconds of search; see `placeto.search.ranks.move_ranks`.
        seed: where its random numbers start.
        max_evaluations: steps to simulate at most.
    """
    problem, devices = placement.problem, placement.devices
    ordered_at_all = problem.graph.num_microbatches > 1 and problem.objective == "step-time"
    if not ordered_at_all or not np.isfinite(placement.step_time):
        return placement
    rng, began = np.random.default_rng(seed), time.monotonic()
    try:
        with interrupts():
            moved = move_ranks(problem, devices, budget_seconds, rng, max_evaluations)
    except KeyboardInterrupt:
        return replace(placement, interrupted=True)
    ranked = replace(problem, grouping=problem.op_group, order=moved.order)
    schedule = simulate(ranked, devices)
    evaluations = placement.evaluations + moved.evaluations
    wall_seconds = placement.wall_seconds + time.monotonic() - began
    worth = (schedule.feasible, -schedule.step_time)
    if not worth > (placement.feasible, -placement.step_time):
        return replace(placement, evaluations=evaluations, wall_seconds=wall_seconds)
    trace = placement.trace
    if schedule.feasible:
        trace = (*trace, (evaluations, wall_seconds, schedule.step_time))
    return replace(
        placement, problem=ranked, step_time=schedule.step_time, peak_memory=schedule.peak_memory,
        feasible=schedule.feasible, evaluations=evaluations, wall_seconds=wall_seconds,
        found_by="ranks", trace=trace,
    )  # fmt: skip
