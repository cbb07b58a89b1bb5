"""Bounds where a device computes faster alone than beside others."""

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation import simulate_many
from placeto.simulation.loads import throughputs


def below_lone(problem: PlacementProblem, seconds: float, *, throughput: bool = False) -> float:
    """A bound of placements on several devices, lowered to one of all placements.

    Op times are those beside busy devices; see `PlacementProblem.alone`. What has all groups on one
    device is as fast as it is.

    Args:
        problem: whose placements are bounded.
        seconds: that none on several devices is below.
        throughput: whether these are seconds a microbatch, or of a step.
    """
    lone = np.flatnonzero((problem.alone < 1) & problem.allowed.all(axis=0))
    if not len(lone):
        return seconds
    singles = lone[:, None].repeat(problem.num_groups, axis=1)
    outcomes = (throughputs if throughput else simulate_many)(problem, singles)
    return float(outcomes.step_time.min(initial=seconds))
