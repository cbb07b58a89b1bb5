"""The search whose placements Placeto imitates before it learns by reinforcement."""

import math

from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints

EVALUATIONS = 2000


def annealed(problem: PlacementProblem) -> Ints:
    """(num_groups,) devices that simulated annealing finds with so many placements.

    Raises:
        KeyboardInterrupt: after Ctrl-C: half a search is no lesson.
    """
    settings = {"max_evaluations": EVALUATIONS}
    placement = place(problem, "annealing", budget_seconds=math.inf, settings=settings)
    if placement.interrupted:
        raise KeyboardInterrupt
    return placement.devices
