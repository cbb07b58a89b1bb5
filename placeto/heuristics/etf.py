"""Earliest finish under memory limits."""

from placeto.heuristics.list_schedule import list_schedule
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints


def earliest_finish(problem: PlacementProblem) -> Ints:
    """(num_groups,) devices by list scheduling in topological order, with memory limits.

    Each group goes on the device on which it would finish earliest, counting the transfers of its
    inputs, of those devices that have room for all of its parameters and outputs. Earliest task
    first is by Hwang, Chow, Anger & Lee (1989, "Scheduling precedence graphs in systems with
    interprocessor communication times"); the memory limits by Jeon et al. (2020, "Baechi: fast
    device placement of machine learning graphs"), whose own order of groups `m-etf` has. Where the
    group graph has cycles, only its edges along the order count.
    """
    return list_schedule(problem, problem.group_order, insertion=False).devices
