"""The favourite child of each group: by a linear program, or the one that costs most to reach."""

import numpy as np
from numpy.typing import ArrayLike

from placeto.heuristics.costs import fastest_seconds, forward_edges, mean_transfer_seconds
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.jit import njit

THRESHOLD = 0.5


def favourite_children(problem: PlacementProblem, limit_seconds: float) -> Ints | None:
    """Solves the relaxed program of small communication times, and rounds it.

    On as many devices as are wanted, each group would share its device with one child at most, its
    favourite, and with one parent at most. For group i of p_i seconds that starts at t_i, and
    edge ij that takes c_ij seconds between two devices, x_ij = 0 if j is i's favourite child:

        minimise w, with t_i + p_i <= w, t_i + p_i + c_ij x_ij <= t_j, 0 <= x_ij <= 1,
        sum over j of (1 - x_ij) <= 1 for every i, sum over i of (1 - x_ij) <= 1 for every j.

    An edge whose x is below 1/2 leads to the favourite child, so that a group has at most one and
    is that of at most one. By Hanen & Munier (1995, "An approximation algorithm for scheduling
    dependent tasks on m processors with small communication delays"), in the form of Jeon et al.
    (2020, "Baechi: fast device placement of machine learning graphs"). Edges that take no time
    are left out: nothing is gained by a favourite child there.

    Returns:
        (num_groups,) the favourite child of each group, -1 for none; None if so many wall-clock
        seconds were too short.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    source, target, size = forward_edges(problem)
    transfer, seconds = mean_transfer_seconds(problem, size), fastest_seconds(problem)
    favourite = np.full(problem.num_groups, -1)
    count, groups = len(transfer), problem.num_groups
    unit = max(float(transfer.max(initial=0.0)), float(seconds.max()))
    if count == 0 or not unit:
        return favourite
    edge, costly = np.arange(count), np.flatnonzero(transfer > 0)
    ends = np.setdiff1d(np.arange(groups), source)
    end = count + np.arange(len(ends))
    parent, child = count + len(ends) + source[costly], count + len(ends) + groups + target[costly]
    columns = count + groups + 1  # x of each edge, t of each group, w
    entries: list[tuple[ArrayLike, ...]] = [  # rows, columns, values
        (edge, edge, transfer / unit), (edge, count + source, 1.0), (edge, count + target, -1.0),
        (end, count + ends, 1.0), (end, columns - 1, -1.0),
        (parent, costly, -1.0), (child, costly, -1.0),
    ]  # fmt: skip
    parts = zip(*(np.broadcast_arrays(*entry) for entry in entries), strict=True)
    row, column, value = (np.concatenate(part) for part in parts)
    least = [1 - np.bincount(node[costly], minlength=groups) for node in (source, target)]
    result = linprog(
        np.arange(columns) == columns - 1,
        A_ub=coo_array((value, (row, column)), (count + len(ends) + 2 * groups, columns)).tocsr(),
        b_ub=np.concatenate([-seconds[source] / unit, -seconds[ends] / unit, *least]),
        bounds=np.concatenate([np.tile([0, 1], (count, 1)), np.tile([0, np.inf], (groups + 1, 1))]),
        method="highs",
        options={"time_limit": limit_seconds},
    )
    if result.x is None or result.status != 0:
        return None
    chosen = costly[result.x[costly] < THRESHOLD]
    favourite[source[chosen]] = target[chosen]
    return favourite


def heaviest_children(problem: PlacementProblem) -> Ints:
    """Favourite children without a program to solve: the edges that take longest, in turn.

    (num_groups,), -1 for none; a group is that of at most one.
    """
    source, target, size = forward_edges(problem)
    transfer = mean_transfer_seconds(problem, size)
    by_transfer = np.argsort(-transfer, kind="stable")
    by_transfer = by_transfer[transfer[by_transfer] > 0]
    return _matched(source[by_transfer], target[by_transfer], problem.num_groups)


@njit(cache=True)
def _matched(source: Ints, target: Ints, num_groups: int) -> Ints:
    favourite = np.full(num_groups, -1)
    has_parent = np.zeros(num_groups, np.bool_)
    for parent, child in zip(source, target):  # noqa: B905 (numba knows no strict)
        if favourite[parent] < 0 and not has_parent[child]:
            favourite[parent] = child
            has_parent[child] = True
    return favourite
