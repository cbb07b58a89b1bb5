"""The placers of Baechi: m-TOPO, m-ETF and m-SCT.

By Jeon et al. (SoCC 2020, arXiv:2301.08695, "Baechi: fast device placement of machine learning
graphs"), for identical devices. Where devices are of several kinds, those of the fastest are used,
and others only for groups that may be on none of these or that none of these has room for. A group
takes as much memory as all of its parameters and outputs.
"""

import numpy as np

from placeto.heuristics.costs import fastest_devices, free_room, without_choice
from placeto.heuristics.earliest_start import earliest_start
from placeto.heuristics.favourite_children import favourite_children, heaviest_children
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.progress import Progress

SOLVER_SHARE = 0.5  # of the seconds that there are


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
    to_fill = np.flatnonzero(fastest_devices(problem)).tolist()
    share = sum(memory) // len(to_fill) + max(memory)
    room = free_room(problem).tolist()
    devices = problem.allowed.argmax(axis=1)
    for group in problem.group_order[~without_choice(problem)[problem.group_order]].tolist():
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
