"""Which order is best for a pipelined step."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from placeto.objective import overflow
from placeto.order import ORDERS
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.simulation import simulate_many
from placeto.support.errors import NotApplicable

_PROBES = ("single", "expert", "stages", "metis")
_PROBE_SECONDS = 2.0
# Of a search in each order: what heuristics find may be best in one in which nothing else is good.
_SEARCHER, _SEARCH_SECONDS = "annealing", 0.5


def ordered(problem: PlacementProblem) -> PlacementProblem:
    """The problem in the order in which the best that heuristics and a short search find is best.

    What fits in memory goes before what does not, then what takes least. A step of one microbatch
    stays as it is.
    """
    if problem.graph.num_microbatches == 1:
        return problem
    found = []
    for method in _PROBES:
        with suppress(NotApplicable):
            found.append(place(problem, method, _PROBE_SECONDS).devices)

    def worth(ordered: PlacementProblem) -> tuple[float, float]:
        searched = place(ordered, _SEARCHER, _SEARCH_SECONDS).devices
        outcomes = simulate_many(ordered, np.stack([*found, searched]))
        over = overflow(ordered, outcomes.peak_memory).tolist()
        return min(zip(over, outcomes.step_time.tolist(), strict=True))

    return min((replace(problem, grouping=problem.op_group, order=o) for o in ORDERS), key=worth)
