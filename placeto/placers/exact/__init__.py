"""The best placement of all, with a proof."""

import math

import numpy as np

from placeto.placers.exact.branching import branch_and_bound, log_symmetric_copies
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.search.starts import offer_starts
from placeto.support.errors import NotApplicable

# Of all placements, those that differ by interchangeable devices as one, times ops: minutes of
# simulation, if nothing could be ruled out.
MAX_SIMULATED_OPS = 1e10
# Of so few ops, times pairs of devices, placements of up to so many groups are so quickly bounded
# that a proof may end, however many there are.
MAX_OPS_ON_PAIRS = 5_000
MAX_GROUPS = 40


def place_exact(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The best of all placements of a small problem, and a proven bound.

    It is for problems whose placements are few enough to be simulated, or of up to 40 groups of
    few ops; see `branch_and_bound`.

    Raises:
        NotApplicable: the problem is too large.
    """
    _check_size(incumbent.problem)
    offer_starts(incumbent, rng)
    incumbent.part = ""
    branch_and_bound(incumbent)


def _check_size(problem: PlacementProblem) -> None:
    ops, groups, devices = problem.graph.num_ops, problem.num_groups, problem.num_devices
    # Logarithms of how many placements can be simulated, and of how many there are, about.
    simulated = math.log(MAX_SIMULATED_OPS / ops) + log_symmetric_copies(problem)
    if float(np.log(problem.allowed.sum(axis=1)).sum()) <= simulated:
        return
    if groups <= MAX_GROUPS and ops * devices**2 <= MAX_OPS_ON_PAIRS:
        return
    most = simulated / math.log(devices)
    raise NotApplicable(
        f"exact: {groups} groups of {ops:,} ops on {devices} devices are too many to prove "
        f"anything of; it can do {MAX_GROUPS} groups of {MAX_OPS_ON_PAIRS // devices**2} ops in "
        f"all, or with so many ops {int(most)} groups (--grouping {int(most)})"
    )
