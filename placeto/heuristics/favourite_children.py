"""The favourite child of each group: by a linear program, or the one that costs most to reach."""

import numpy as np

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

    Args:
        problem: what is placed.
        limit_seconds: wall-clock seconds that the solver may take.

    Returns:
        (num_groups,) the favourite child of each group, -1 for none; None if the time was too
        short.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    edges = forward_edges(problem)
    transfer = mean_transfer_seconds(problem, edges.bytes)
    seconds = fastest_seconds(problem)
    favourite = np.full(problem.num_groups, -1)
    count, groups = len(transfer), problem.num_groups
    unit = max(float(transfer.max(initial=0.0)), float(seconds.max()))
    if count == 0 or not unit:
        return favourite
    numbers, ones = np.arange(count), np.ones(count)
    columns = count + groups + 1  # x of each edge, t of each group, w
    precedence = coo_array(
        (
            np.concatenate([transfer / unit, ones, -ones]),
            (
                np.tile(numbers, 3),
                np.concatenate([numbers, count + edges.source, count + edges.target]),
            ),
        ),
        shape=(count, columns),
    )
    ends = np.setdiff1d(np.arange(groups), edges.source)
    makespan = coo_array(
        (
            np.concatenate([np.ones(len(ends)), -np.ones(len(ends))]),
            (
                np.tile(np.arange(len(ends)), 2),
                np.concatenate([count + ends, np.full(len(ends), columns - 1)]),
            ),
        ),
        shape=(len(ends), columns),
    )
    costly = transfer > 0
    shares = [
        coo_array((-ones[costly], (node[costly], numbers[costly])), shape=(groups, columns))
        for node in (edges.source, edges.target)
    ]
    least = [1 - np.bincount(node[costly], minlength=groups) for node in edges[:2]]
    result = linprog(
        np.arange(columns) == columns - 1,
        A_ub=vstack([precedence, makespan, *shares]).tocsr(),
        b_ub=np.concatenate([-seconds[edges.source] / unit, -seconds[ends] / unit, *least]),
        bounds=np.concatenate([np.tile([0, 1], (count, 1)), np.tile([0, np.inf], (groups + 1, 1))]),
        method="highs",
        options={"time_limit": limit_seconds},
    )
    if result.x is None or result.status != 0:
        return None
    chosen = costly & (result.x[:count] < THRESHOLD)
    favourite[edges.source[chosen]] = edges.target[chosen]
    return favourite


def heaviest_children(problem: PlacementProblem) -> Ints:
    """Favourite children without a program to solve: the edges that take longest, in turn.

    Returns:
        (num_groups,) the favourite child of each group, -1 for none; a group is that of at most
        one.
    """
    edges = forward_edges(problem)
    transfer = mean_transfer_seconds(problem, edges.bytes)
    by_transfer = np.argsort(-transfer, kind="stable")
    by_transfer = by_transfer[transfer[by_transfer] > 0]
    favourite: Ints = _matched(
        edges.source[by_transfer], edges.target[by_transfer], problem.num_groups
    )
    return favourite


@njit(cache=True)
def _matched(source: Ints, target: Ints, num_groups: int) -> Ints:  # pragma: no cover
    favourite = np.full(num_groups, -1)
    has_parent = np.zeros(num_groups, np.bool_)
    for parent, child in zip(source, target):  # noqa: B905 (numba knows no strict)
        if favourite[parent] < 0 and not has_parent[child]:
            favourite[parent] = child
            has_parent[child] = True
    return favourite
