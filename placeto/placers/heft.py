"""Heterogeneous earliest finish time."""

import numpy as np
from numba import njit

from placeto.graph import Floats, Ints
from placeto.order import compressed
from placeto.placers.base import Incumbent
from placeto.placers.costs import forward_edges, mean_seconds, mean_transfer_seconds
from placeto.placers.list_schedule import ListSchedule, list_schedule
from placeto.placers.repair import offer_repaired
from placeto.problem import PlacementProblem


def place_heft(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """HEFT by Topcuoglu, Hariri & Wu (2002), with memory limits.

    Groups are taken by falling upward rank (see `upward_ranks`). Each goes on the device on which
    it finishes first, also between groups that were placed before it (the insertion policy), of
    those devices that have room for all of its parameters and outputs. The method is that of
    "Performance-effective and low-complexity task scheduling for heterogeneous computing", where
    no transfer hinders another. Its placement is offered, and the one that it finds when each
    channel carries one transfer after another. What does not fit is repaired; see `repair`.
    """
    for queues in (False, True):
        schedule = heterogeneous_earliest_finish(incumbent.problem, queues=queues)
        offer_repaired(incumbent, schedule.devices)


def heterogeneous_earliest_finish(problem: PlacementProblem, *, queues: bool) -> ListSchedule:
    """HEFT's schedule, where channels are queues or where they are not; see `place_heft`."""
    ranks = upward_ranks(problem)
    # Along an edge the rank does not rise, so that equals in topological order are in order.
    order = np.lexsort((problem.group_position, -ranks))
    return list_schedule(problem, order, insertion=True, queues=queues)


def upward_ranks(problem: PlacementProblem) -> Floats:
    """(num_groups,) seconds of the longest path from each group's start to the end of the step.

    A group counts with the mean of its seconds over the devices that it may be on, an edge with
    the mean over the pairs of devices.
    """
    edges = forward_edges(problem)
    start, outputs = compressed(problem.num_groups, edges.source, np.arange(len(edges.source)))
    transfer = mean_transfer_seconds(problem, edges.bytes)[outputs]
    ranks: Floats = _ranks(
        problem.group_order, start, edges.target[outputs], transfer, mean_seconds(problem)
    )
    return ranks


@njit(cache=True)
def _ranks(
    order: Ints, start: Ints, targets: Ints, transfer: Floats, seconds: Floats
) -> Floats:  # pragma: no cover
    ranks = seconds.copy()
    for group in order[::-1]:
        after = 0.0
        for edge in range(start[group], start[group + 1]):
            after = max(after, transfer[edge] + ranks[targets[edge]])
        ranks[group] += after
    return ranks
