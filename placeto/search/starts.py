"""Heuristics, offered: what every search starts from."""

import numpy as np

from placeto.heuristics.table import HEURISTICS
from placeto.search.incumbent import Incumbent
from placeto.search.repair import offer_repaired

STARTS = ("single", "expert", "etf", "heft")


def offer_heuristic(incumbent: Incumbent, rng: np.random.Generator, name: str) -> None:
    """Offers what a heuristic of the table finds; no further batch once the budget is spent.

    Raises:
        NotApplicable: it cannot do anything with the problem.
    """
    heuristic = HEURISTICS[name]
    left = max(incumbent.budget_seconds - incumbent.seconds, 0.0)
    for batch in heuristic.placements(incumbent.problem, rng, left, incumbent.progress):
        # One by one: to run a few over all cores is not worth compiling that.
        offer = offer_repaired if heuristic.repaired else Incumbent.offer
        for devices in batch:
            offer(incumbent, devices)
        if incumbent.expired:
            return


def offer_starts(
    incumbent: Incumbent, rng: np.random.Generator, max_evaluations: int | None = None
) -> bool:
    """Offers what the usual heuristics find, one after the other; the `part` is the one at work.

    Args:
        incumbent: what is offered to.
        rng: for heuristics that draw.
        max_evaluations: placements that may be simulated in all; None for no such limit.

    Returns:
        Whether any of the budget is left.
    """
    for name in STARTS:
        incumbent.part = name
        offer_heuristic(incumbent, rng, name)
        if incumbent.share_spent(max_evaluations) >= 1 or incumbent.expired:
            return False
    return True
