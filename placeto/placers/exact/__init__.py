"""The best placement of all, with a proof."""

import math

import numpy as np

from placeto.initial import all_on, expert_placement
from placeto.placers.base import Incumbent, NotApplicable
from placeto.placers.etf import earliest_finish
from placeto.placers.exact.branching import branch_and_bound, log_symmetric_copies
from placeto.placers.exact.solver import solve
from placeto.problem import PlacementProblem

# Of all placements, those that differ by interchangeable devices as one, times ops: minutes of
# simulation, if nothing could be ruled out.
MAX_SIMULATED_OPS = 1e10
# Ops, times pairs of devices, above which CP-SAT does not finish its preparations in seconds.
MAX_OPS_ON_PAIRS = 5_000
MAX_GROUPS = 40


def place_exact(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The best of all placements of a small problem, and a proven bound.

    Where the placements are few enough to be simulated, branch and bound proves the best one.
    Of graphs with more groups, up to 40, but few ops, CP-SAT schedules the ops on groups and
    devices together, which gives placements and a bound; branch and bound uses the time that is
    left. Both take memory into account by what groups cannot do without, and leave the rest of it
    to the simulator.

    Raises:
        NotApplicable: the problem is too large for both.
    """
    problem = incumbent.problem
    few = _log_count(problem) <= math.log(MAX_SIMULATED_OPS / problem.graph.num_ops)
    if not few:
        _check_size(problem)
    singles = [all_on(problem, device) for device in range(problem.num_devices)]
    incumbent.offer_many([*singles, expert_placement(problem), earliest_finish(problem)])
    if not few and incumbent.step_time > 0:
        solve(incumbent, rng)
    branch_and_bound(incumbent)


def _log_count(problem: PlacementProblem) -> float:
    """Logarithm of about how many placements there are, those of alike devices as one."""
    choices = np.log(problem.allowed.sum(axis=1)).sum()
    return float(choices) - log_symmetric_copies(problem)


def _check_size(problem: PlacementProblem) -> None:
    ops, groups, devices = problem.graph.num_ops, problem.num_groups, problem.num_devices
    if groups <= MAX_GROUPS and ops * devices**2 <= MAX_OPS_ON_PAIRS:
        return
    simulated = math.log(MAX_SIMULATED_OPS / ops) + log_symmetric_copies(problem)
    most = simulated / math.log(devices)
    raise NotApplicable(
        f"exact: {groups} groups of {ops:,} ops on {devices} devices are too many to prove "
        f"anything of; it can do {MAX_GROUPS} groups of {MAX_OPS_ON_PAIRS // devices**2} ops in "
        f"all, or with so many ops {int(most)} groups (--grouping {int(most)})"
    )
