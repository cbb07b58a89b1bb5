"""Heterogeneous earliest finish time."""

import numpy as np

from placeto.heuristics.costs import forward_edges, mean_seconds, mean_transfer_seconds
from placeto.heuristics.list_schedule import ListSchedule, list_schedule
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import compressed
from placeto.support.jit import njit


def heterogeneous_earliest_finish(problem: PlacementProblem, *, queues: bool) -> ListSchedule:
    """HEFT's schedule by Topcuoglu, Hariri & Wu (2002), with memory limits.

    Groups are taken by falling upward rank (see `upward_ranks`). Each goes on the device on which
    it finishes first, also between groups that were placed before it (the insertion policy), of
    those devices that have room for all of its parameters and outputs. The method is that of
    "Performance-effective and low-complexity task scheduling for heterogeneous computing", where no
    transfer hinders another; with `queues`, each channel carries one after another.
    """
    ranks = upward_ranks(problem)
    # Along an edge the rank does not rise, so that equals in topological order are in order.
    order = np.lexsort((problem.group_position, -ranks))
    return list_schedule(problem, order, insertion=True, queues=queues)


def upward_ranks(problem: PlacementProblem) -> Floats:
    """(num_groups,) seconds of the longest path from each group's start to the end of the step.

    A group counts with the mean of its seconds over the devices that it may be on, an edge with
    the mean over the pairs of devices.
    """
    source, target, size = forward_edges(problem)
    start, outputs = compressed(problem.num_groups, source, np.arange(len(source)))
    transfer = mean_transfer_seconds(problem, size)[outputs]
    return _ranks(problem.group_order, start, target[outputs], transfer, mean_seconds(problem))


@njit(cache=True)
def _ranks(order: Ints, start: Ints, targets: Ints, transfer: Floats, seconds: Floats) -> Floats:
    ranks = seconds.copy()
    for group in order[::-1]:
        after = 0.0
        for edge in range(start[group], start[group + 1]):
            after = max(after, transfer[edge] + ranks[targets[edge]])
        ranks[group] += after
    return ranks
