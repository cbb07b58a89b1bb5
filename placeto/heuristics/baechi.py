"""The placers of Baechi: m-TOPO, m-ETF and m-SCT.

By Jeon et al. (SoCC 2020, arXiv:2301.08695, "Baechi: fast device placement of machine learning
graphs"), for identical devices. Where devices are of several kinds, those of the fastest are used,
and others only for groups that may be on none of these or that none of these has room for. A group
takes as much memory as all of its parameters and outputs.
"""

import numpy as np
from numpy.typing import ArrayLike

from placeto.heuristics import costs
from placeto.heuristics.earliest_start import earliest_start
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.progress import Progress

SOLVER_SHARE = 0.5  # of the seconds that there are
THRESHOLD = 0.5  # of an edge's x, below which it leads to the favourite child


def small_communication_times(problem: PlacementProblem, seconds: float, say: Progress) -> Ints:
    """(num_groups,) as m-ETF, but a device waits for the favourite child of the group it ran last.

    Small communication times of Hanen & Munier (1995) under memory limits; see
    `favourite_children` and `earliest_start`. If the linear program takes more than half of the
    seconds, favourites are the children that take longest to reach instead, and that is said.
    """
    favourite = favourite_children(problem, SOLVER_SHARE * seconds)
    if favourite is None:
        say("m-sct: the linear program takes too long; the heaviest edges instead")
        favourite = heaviest_children(problem)
    return earliest_start(problem, favourite).devices


def filled_in_order(problem: PlacementProblem) -> Ints:
    """(num_groups,) devices, one after another filled in topological order up to a cap.

    The cap is an equal share of all groups' memory plus that of the largest group, or the device's
    memory if that is less. A device that is left is not returned to. A group that may be on none
    of the devices, or that none of those to come can take, goes where most room is left of where
    it may be. Groups with no choice take their room before all others.
    """
    memory, limit = problem.group_memory.tolist(), problem.memory_limit.tolist()
    to_fill = np.flatnonzero(costs.fastest_devices(problem)).tolist()
    share = sum(memory) // len(to_fill) + max(memory)
    room = costs.free_room(problem).tolist()
    devices = problem.allowed.argmax(axis=1)
    for group in problem.group_order[~costs.without_choice(problem)[problem.group_order]].tolist():
        may = np.flatnonzero(problem.allowed[group]).tolist()
        for place, device in enumerate(to_fill):
            left = room[device] - max(limit[device] - share, 0)
            if device in may and memory[group] <= left:
                del to_fill[:place]
                break
        else:
            device = max(may, key=room.__getitem__)
        devices[group] = device
        room[device] -= memory[group]
    return devices


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

    source, target, size = costs.forward_edges(problem)
    transfer, seconds = costs.mean_transfer_seconds(problem, size), costs.fastest_seconds(problem)
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
    source, target, size = costs.forward_edges(problem)
    transfer = costs.mean_transfer_seconds(problem, size)
    order = np.argsort(-transfer, kind="stable")
    order = order[transfer[order] > 0]
    child_of: dict[int, int] = {}
    taken: set[int] = set()
    for parent, child in zip(source[order].tolist(), target[order].tolist(), strict=True):
        if parent not in child_of and child not in taken:
            child_of[parent] = child
            taken.add(child)
    favourite = np.full(problem.num_groups, -1)
    favourite[[*child_of]] = [*child_of.values()]
    return favourite
