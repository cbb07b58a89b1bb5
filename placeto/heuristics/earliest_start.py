"""List scheduling by earliest start under memory limits, favourite children or none."""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from placeto.heuristics.costs import (
    fastest_devices,
    forward_edges,
    free_room,
    links,
    mean_transfer_seconds,
    without_choice,
)
from placeto.heuristics.list_schedule import ListSchedule
from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import compressed
from placeto.support.jit import inner, njit


class _Groups(NamedTuple):
    allowed: Bools  # (num_groups, num_devices)
    preferred: Bools  # (num_groups, num_devices) of these, those that are tried first
    fixed: Bools  # (num_groups,) whether only one device is allowed
    seconds: Floats  # (num_groups, num_devices) s
    memory: Ints  # (num_groups,) bytes
    position: Ints  # (num_groups,) the first of those that could start goes first
    favourite: Ints  # (num_groups,) favourite child, -1 for none
    patience: Floats  # (num_groups,) s that a device waits for it


class _Edges(NamedTuple):
    """Compressed rows of each group's inputs and of its outputs."""

    input_start: Ints  # (num_groups + 1,)
    source: Ints  # (num_edges,) the group that each input is from
    bytes: Ints  # (num_edges,) of each input
    output_start: Ints  # (num_groups + 1,)
    target: Ints  # (num_edges,) the group that each output goes to


class _State(NamedTuple):
    device_of: Ints  # (num_groups,) -1 while it has none
    finish: Floats  # (num_groups,) s
    arrival: Floats  # (num_groups, num_devices) s when the inputs are there, once that is known
    waiting: Ints  # (num_groups,) inputs that come from groups without a device
    free: Floats  # (num_devices,) s from when each is idle
    room: Ints  # (num_devices,) bytes
    awaited: Ints  # (num_devices,) the favourite child that each waits for, -1 for none
    awake: Floats  # (num_devices,) s until when


def earliest_start(problem: PlacementProblem, favourite: Ints | None = None) -> ListSchedule:
    """Starts, again and again, the pair of a group and a device that can start first.

    Of pairs that can start at the same time, the group that is first in topological order goes
    first, on the device where its inputs are first, then on the lowest. Transfers do not
    hinder each other. Only devices of the fastest kind are used, for the method is for
    identical ones: a group goes elsewhere if it may be on none of these, or if none of them has
    room for all of its parameters and outputs: then where it finishes first of those that have
    room, or where most room is left. Groups with no choice take their room before all others.

    With favourite children, a device that has run a group waits for its favourite child for as
    long as the child's inputs from it would take to another device. Meanwhile it runs only the
    child, or urgent groups: those whose inputs are on every device (Hanen & Munier 1995, "An
    approximation algorithm for scheduling dependent tasks on m processors with small communication
    delays").

    Args:
        problem: what is placed.
        favourite: (num_groups,) the favourite child of each group, -1 for none.

    Returns:
        Devices, and when the groups finish if nothing but the above holds them up.
    """
    count = problem.num_groups
    edges = forward_edges(problem)
    numbers = np.arange(len(edges.source))
    input_start, inputs = compressed(count, edges.target, numbers)
    output_start, outputs = compressed(count, edges.source, numbers)
    allowed = problem.allowed
    preferred = allowed & fastest_devices(problem)
    preferred = np.where(preferred.any(axis=1, keepdims=True), preferred, allowed)
    patience = np.zeros(count)
    if favourite is None:
        favourite = np.full(count, -1)
    else:
        chosen = favourite[edges.source] == edges.target
        patience[edges.source[chosen]] = mean_transfer_seconds(problem, edges.bytes[chosen])
    groups = _Groups(
        allowed,
        preferred,
        without_choice(problem),
        problem.group_seconds,
        problem.group_memory,
        problem.group_position,
        favourite,
        patience,
    )
    rows = _Edges(
        input_start,
        edges.source[inputs],
        edges.bytes[inputs],
        output_start,
        edges.target[outputs],
    )
    devices = problem.num_devices
    state = _State(
        device_of=np.full(count, -1),
        finish=np.zeros(count),
        arrival=np.zeros((count, devices)),
        waiting=np.diff(input_start),
        free=np.zeros(devices),
        room=free_room(problem),
        awaited=np.full(devices, -1),
        awake=np.zeros(devices),
    )
    _run(problem.group_order, groups, rows, *links(problem), state)
    return ListSchedule(state.device_of, state.finish)


@njit(cache=True)
def _run(
    order: Ints, groups: _Groups, edges: _Edges, startup: Floats, pace: Floats, s: _State
) -> None:  # pragma: no cover
    num_groups, num_devices = groups.allowed.shape
    # Pairs whose inputs are still on the way, by time; device `num_devices` stands for all.
    coming = [(0.0, 0, 0)]
    coming.pop()
    # For each device the pairs that could start, by position; last, the urgent groups.
    ready = [[(0, 0)] for _ in range(num_devices + 1)]
    for heap in ready:
        heap.pop()
    for group in order:
        if s.waiting[group] == 0:
            _announce(group, groups, edges, startup, pace, s, coming)
    placed, now = 0, 0.0
    while placed < num_groups:
        while len(coming) > 0 and coming[0][0] <= now:
            _, group, device = heappop(coming)
            if s.device_of[group] < 0:
                heappush(ready[device], (groups.position[group], group))
        group, device = _choice(now, groups, s, ready)
        if group < 0:
            now = _next_time(now, s, coming)
            continue
        s.device_of[group] = device
        begin = max(now, s.free[device], s.arrival[group, device])
        s.finish[group] = s.free[device] = begin + groups.seconds[group, device]
        s.awaited[device] = groups.favourite[group]
        s.awake[device] = s.finish[group] + groups.patience[group]
        if not groups.fixed[group]:
            s.room[device] -= groups.memory[group]
        placed += 1
        for edge in range(edges.output_start[group], edges.output_start[group + 1]):
            target = edges.target[edge]
            s.waiting[target] -= 1
            if s.waiting[target] == 0:
                _announce(target, groups, edges, startup, pace, s, coming)


@inner(cache=True)
def _announce(
    group: int,
    groups: _Groups,
    edges: _Edges,
    startup: Floats,
    pace: Floats,
    s: _State,
    coming: Any,
) -> None:  # pragma: no cover
    """Works out when a group's inputs are on each device, now that all producers have one."""
    num_devices = len(s.free)
    urgent = 0.0
    for device in range(num_devices):
        there = 0.0
        for edge in range(edges.input_start[group], edges.input_start[group + 1]):
            source = edges.source[edge]
            origin = s.device_of[source]
            carried = startup[origin, device] + edges.bytes[edge] * pace[origin, device]
            there = max(there, s.finish[source] + carried)
        s.arrival[group, device] = there
        if groups.preferred[group, device]:
            heappush(coming, (there, group, device))
            urgent = max(urgent, there)
    heappush(coming, (urgent, group, num_devices))


@inner(cache=True)
def _choice(
    now: float, groups: _Groups, s: _State, ready: Any
) -> tuple[int, int]:  # pragma: no cover
    """The pair that starts next at the time `now`; group -1 if there is none."""
    num_devices = len(s.free)
    best_group, best_device = -1, -1
    best = (3, 0, 0.0)  # waiting devices have rank 2, so that urgent groups go to free ones
    for device in range(num_devices):
        if s.free[device] > now:
            continue
        child = s.awaited[device]
        waits = child >= 0 and s.device_of[child] < 0 and now < s.awake[device]
        if waits and _has_room(child, device, groups, s):
            if s.waiting[child] == 0 and s.arrival[child, device] <= now:
                group, rank = child, 1
            else:
                heap = ready[num_devices]
                while len(heap) > 0 and s.device_of[heap[0][1]] >= 0:
                    heappop(heap)
                group, rank = heap[0][1] if len(heap) > 0 else -1, 2
                if group >= 0 and not _has_room(group, device, groups, s):
                    group = -1
        else:
            heap = ready[device]
            while len(heap) > 0 and (
                s.device_of[heap[0][1]] >= 0
                or (
                    not _has_room(heap[0][1], device, groups, s)
                    and _has_room_somewhere(heap[0][1], groups, s)
                )
            ):
                heappop(heap)
            group, rank = heap[0][1] if len(heap) > 0 else -1, 1
        if group >= 0:
            key = (rank, groups.position[group], s.arrival[group, device])
            if key < best:
                best, best_group, best_device = key, group, device
    if best_group >= 0 and not _has_room(best_group, best_device, groups, s):
        best_device = _anywhere(best_group, groups, s)
    return best_group, best_device


@inner(cache=True)
def _has_room(group: int, device: int, groups: _Groups, s: _State) -> bool:  # pragma: no cover
    fits = groups.fixed[group] or s.room[device] >= groups.memory[group]
    return groups.preferred[group, device] and fits


@inner(cache=True)
def _has_room_somewhere(group: int, groups: _Groups, s: _State) -> bool:  # pragma: no cover
    for device in range(len(s.free)):  # noqa: SIM110 (numba knows no generators of such)
        if _has_room(group, device, groups, s):
            return True
    return False


@inner(cache=True)
def _anywhere(group: int, groups: _Groups, s: _State) -> int:  # pragma: no cover
    """A device for a group that no preferred one has room for."""
    chosen, roomiest, earliest = -1, -1, np.inf
    for device in range(len(s.free)):
        if not groups.allowed[group, device]:
            continue
        if roomiest < 0 or s.room[device] > s.room[roomiest]:
            roomiest = device
        begin = max(s.free[device], s.arrival[group, device])
        finish = begin + groups.seconds[group, device]
        if s.room[device] >= groups.memory[group] and finish < earliest:
            chosen, earliest = device, finish
    return chosen if chosen >= 0 else roomiest


@inner(cache=True)
def _next_time(now: float, s: _State, coming: Any) -> float:  # pragma: no cover
    """The next instant at which another pair may be able to start."""
    then = coming[0][0] if len(coming) > 0 else np.inf
    for device in range(len(s.free)):
        if s.free[device] > now:
            then = min(then, s.free[device])
        elif s.awaited[device] >= 0 and s.awake[device] > now:
            then = min(then, s.awake[device])
    return then
