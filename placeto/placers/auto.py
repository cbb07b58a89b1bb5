"""The placer `auto`: the search, and where that is quick, a proof before it."""

import numpy as np

from placeto.placers.exact.branching import branch_and_bound, closed
from placeto.search.auto import search
from placeto.search.incumbent import Incumbent
from placeto.search.repair import offer_starts
from placeto.search.settings import SearchConfig

# For throughput: optima of so few groups are hard to come by otherwise, as those of partitions of a
# few numbers are.
PROVEN_GROUPS = 20
PROOF_SHARE = 0.3  # of the budget


def place_auto(incumbent: Incumbent, rng: np.random.Generator, config: SearchConfig) -> None:
    """Does `search`; for throughput, of few groups, branch and bound first, which often ends it.

    Not where `max_evaluations` is set: how far it gets depends on the machine.
    """
    problem = incumbent.problem
    few = problem.objective == "throughput" and problem.num_groups <= PROVEN_GROUPS
    if few and config.max_evaluations is None and offer_starts(incumbent, rng):
        incumbent.part = "exact"
        branch_and_bound(incumbent, PROOF_SHARE * incumbent.budget_seconds)
        if closed(incumbent):
            return
    search(incumbent, rng, config)
