"""Earliest finish under memory limits."""

import numpy as np

from placeto.graph import Ints
from placeto.placers.base import Incumbent
from placeto.placers.list_schedule import list_schedule
from placeto.placers.repair import offer_repaired
from placeto.problem import PlacementProblem


def place_etf(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """List scheduling by earliest finish, with memory limits, in topological order.

    Each group goes on the device on which it would finish earliest, counting the transfers of its
    inputs, of those devices that have room for all of its parameters and outputs. Earliest task
    first is by Hwang, Chow, Anger & Lee (1989, "Scheduling precedence graphs in systems with
    interprocessor communication times"); the memory limits by Jeon et al. (2020, "Baechi: fast
    device placement of machine learning graphs"), whose own order of groups `m-etf` has. What
    does not fit for all that is repaired; see `repair`.
    """
    offer_repaired(incumbent, earliest_finish(incumbent.problem))


def earliest_finish(problem: PlacementProblem) -> Ints:
    """(num_groups,) devices by earliest finish under memory limits; see `place_etf`.

    Where the group graph has cycles, only its edges along the order count.
    """
    return list_schedule(problem, problem.group_order, insertion=False).devices
