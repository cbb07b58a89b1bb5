"""What the search tries next: moves, drawn evenly.

A move is what a placement becomes when some groups change their devices.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import compressed
from placeto.support.jit import inner


class Move(IntEnum):
    """Kinds of moves. A group never goes to a device that it may not be on: then it stays.

    A run is some groups in a row along the topological order. A region is a group and others
    around it, connected by edges of the group graph. Sizes are drawn evenly on a log scale, from
    2 to half of the groups.
    """

    SINGLE = 0  # a group goes to another device
    FOLLOW = 1  # a group goes to the device of a group that it shares an edge with
    SWAP = 2  # two groups on different devices change places
    RUN = 3  # a run goes to one device
    PART = 4  # of a run, the groups on one device go to another
    EXCHANGE = 5  # of a run, the groups on two devices change places
    SHIFT = 6  # a run next to where the device changes takes the device from across
    REGION = 7  # a region goes to one device
    CLUSTER = 8  # a region of groups that are on one device goes to another


NUM_MOVES = len(Move)
PRIOR = 0.01  # gains a try, of a kind that was not tried yet


class Neighbourhood(NamedTuple):
    """What moves are drawn from."""

    allowed: Bools  # (num_groups, num_devices)
    movable: Ints  # (num_movable,) groups that may be on several devices
    order: Ints  # (num_groups,) groups in topological order
    position: Ints  # (num_groups,) where each stands there
    start: Ints  # (num_groups + 1,) compressed rows of
    adjacent: Ints  # (num_adjacent,) the groups that each shares an edge with


def neighbourhood(problem: PlacementProblem) -> Neighbourhood:
    """What moves of a problem's groups are drawn from."""
    parent, child = problem.dag_edges
    ends, others = np.concatenate([parent, child]), np.concatenate([child, parent])
    return Neighbourhood(
        problem.allowed,
        np.flatnonzero(problem.allowed.sum(axis=1) > 1),
        problem.group_order,
        problem.group_position,
        *compressed(problem.num_groups, ends, others),
    )


@inner(cache=True)
def propose(space: Neighbourhood, devices: Ints, kind: int, rng: Generator) -> None:
    """Moves groups of a placement, unless those drawn have to stay; at least one is movable."""
    group = space.movable[_below(len(space.movable), rng)]
    if kind == Move.SWAP:
        _swap(space, devices, group, rng)
    elif kind == Move.SHIFT:
        _shift(space, devices, group, rng)
    else:
        nearby = kind == Move.FOLLOW or (kind != Move.SINGLE and rng.random() < 0.5)
        there = _other_device(space, devices, group, nearby, rng)
        move_around(space, devices, kind, group, there, rng)


@inner(cache=True)
def move_around(
    space: Neighbourhood, devices: Ints, kind: int, group: int, there: int, rng: Generator
) -> None:
    """Moves a group, or a run or a region around it, to a device: all kinds but SWAP and SHIFT.

    Of several groups those that may not be there stay; a single one must be allowed there.
    """
    if kind in (Move.SINGLE, Move.FOLLOW):
        devices[group] = there
        return
    here = devices[group]
    size = _size(len(devices), rng)
    if kind in (Move.REGION, Move.CLUSTER):
        groups = _region(space, devices, group, size, kind == Move.CLUSTER, rng)
    else:
        first = max(space.position[group] - _below(size, rng), 0)
        groups = space.order[first : first + size]
    for other in groups:
        if kind in (Move.RUN, Move.REGION) or devices[other] == here:
            _put(space, devices, other, there)
        elif kind == Move.EXCHANGE and devices[other] == there:
            _put(space, devices, other, here)


@inner(cache=True)
def _swap(space: Neighbourhood, devices: Ints, group: int, rng: Generator) -> None:
    """Swaps a group with the first group on another device from a random one on, if they may."""
    here, first = devices[group], _below(len(space.movable), rng)
    for step in range(len(space.movable)):
        other = space.movable[(first + step) % len(space.movable)]
        there = devices[other]
        if there != here and space.allowed[group, there] and space.allowed[other, here]:
            devices[group], devices[other] = there, here
            return


@inner(cache=True)
def _shift(space: Neighbourhood, devices: Ints, group: int, rng: Generator) -> None:
    """Shifts the next change of device along the order, before or behind a group, either way."""
    step = 1 if rng.random() < 0.5 else -1
    change = space.position[group]
    here = devices[group]
    while devices[space.order[change]] == here:
        change += step
        if not 0 <= change < len(devices):
            return
    size = _size(len(devices), rng)
    if rng.random() < 0.5:
        first, last, device = change, change + step * size, here
    else:
        first, last = change - step, change - step - step * size
        step, device = -step, devices[space.order[change]]
    for index in range(first, min(max(last, -1), len(devices)), step):
        _put(space, devices, space.order[index], device)


@inner(cache=True)
def _region(
    space: Neighbourhood, devices: Ints, group: int, size: int, together: bool, rng: Generator
) -> Ints:
    """At most `size` groups around a group; if `together`, all on its device."""
    region = np.empty(len(devices), np.int64)
    seen = np.zeros(len(devices), np.bool_)
    region[0] = group
    seen[group] = True
    inside, known = 0, 1  # region[inside:known] are the groups next to the region
    while inside < min(size, known):
        drawn = inside + _below(known - inside, rng)
        region[inside], region[drawn] = region[drawn], region[inside]
        member = region[inside]
        inside += 1
        for index in range(space.start[member], space.start[member + 1]):
            other = space.adjacent[index]
            if not seen[other] and (not together or devices[other] == devices[group]):
                seen[other] = True
                region[known] = other
                known += 1
    return region[:inside]


@inner(cache=True)
def _put(space: Neighbourhood, devices: Ints, group: int, device: int) -> None:
    if space.allowed[group, device]:
        devices[group] = device


@inner(cache=True)
def _other_device(
    space: Neighbourhood, devices: Ints, group: int, nearby: bool, rng: Generator
) -> int:
    """Another device that a movable group may be on; if `nearby`, an adjacent group's if it can."""
    chosen, count = -1, 0
    for index in range(space.start[group], space.start[group + 1] if nearby else 0):
        device = devices[space.adjacent[index]]
        if device != devices[group] and space.allowed[group, device]:
            count += 1
            if _below(count, rng) == 0:
                chosen = device
    for device in range(0 if count else space.allowed.shape[1]):
        if device != devices[group] and space.allowed[group, device]:
            count += 1
            if _below(count, rng) == 0:
                chosen = device
    return chosen


@inner(cache=True)
def _size(num_groups: int, rng: Generator) -> int:
    return int(2 * max(num_groups / 4, 1.0) ** rng.random())


@inner(cache=True)
def _below(number: int, rng: Generator) -> int:
    return int(rng.random() * number)


@inner(cache=True)
def draw_kind(tried: Floats, gained: Floats, evenly: float, rng: Generator) -> int:
    """Draws a kind of move.

    It is the likelier the larger the share of its tries that gained, of (NUM_MOVES,) counts;
    `evenly` is the chance that all are equally likely.
    """
    kinds = len(tried)
    if rng.random() < evenly:
        return int(rng.random() * kinds)
    total = 0.0
    for kind in range(kinds):
        total += (gained[kind] + PRIOR) / (tried[kind] + 1)
    point = rng.random() * total
    for kind in range(kinds):
        point -= (gained[kind] + PRIOR) / (tried[kind] + 1)
        if point < 0:
            return kind
    return kinds - 1
