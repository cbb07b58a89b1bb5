"""List scheduling by earliest start under memory limits, favourite children or none."""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from placeto.heuristics import costs
from placeto.heuristics.list_schedule import ListSchedule
from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import compressed
from placeto.support.jit import inner, njit


class _Task(NamedTuple):
    groups: costs.Groups
    order: Ints  # (num_groups,) topological
    position: Ints  # (num_groups,) in it; the first of those that could start goes first
    preferred: Bools  # (num_groups, num_devices) of those allowed, the ones that are tried first
    favourite: Ints  # (num_groups,) favourite child, -1 for none
    patience: Floats  # (num_groups,) s that a device waits for it
    output_start: Ints  # (num_groups + 1,) compressed rows of outputs:
    output_target: Ints  # (num_edges,) the group that each goes to
    startup: Floats  # (num_devices, num_devices) s
    pace: Floats  # (num_devices, num_devices) s/byte


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

    With favourite children, (num_groups,) with -1 for none, a device that has run a group waits for
    its favourite child for as long as the child's inputs from it would take to another device.
    Meanwhile it runs only the child, or urgent groups: those whose inputs are on every device
    (Hanen & Munier 1995, "An approximation algorithm for scheduling dependent tasks on m processors
    with small communication delays").
    """
    count, devices = problem.num_groups, problem.num_devices
    source, target, size = costs.forward_edges(problem)
    groups = costs.groups_of(problem)
    preferred = problem.allowed & costs.fastest_devices(problem)
    preferred = np.where(preferred.any(axis=1, keepdims=True), preferred, problem.allowed)
    patience = np.zeros(count)
    if favourite is None:
        favourite = np.full(count, -1)
    else:
        chosen = favourite[source] == target
        patience[source[chosen]] = costs.mean_transfer_seconds(problem, size[chosen])
    task = _Task(
        groups, problem.group_order, problem.group_position, preferred, favourite, patience,
        *compressed(count, source, target), *costs.links(problem),
    )  # fmt: skip
    device_of, finish, arrival = np.full(count, -1), np.zeros(count), np.zeros((count, devices))
    free, awaited, awake = np.zeros(devices), np.full(devices, -1), np.zeros(devices)
    waiting, room = np.diff(groups.input_start), costs.free_room(problem)
    _run(task, _State(device_of, finish, arrival, waiting, free, room, awaited, awake))
    return ListSchedule(device_of, finish)


@njit(cache=True)
def _run(p: _Task, s: _State) -> None:
    groups, num_devices = p.groups, len(s.free)
    # Pairs whose inputs are still on the way, by time; device `num_devices` stands for all.
    coming = [(0.0, 0, 0)]
    coming.pop()
    # For each device the pairs that could start, by position; last, the urgent groups.
    ready = [[(0, 0)] for _ in range(num_devices + 1)]
    for heap in ready:
        heap.pop()
    for group in p.order:
        if s.waiting[group] == 0:
            _announce(group, p, s, coming)
    placed, now = 0, 0.0
    while placed < len(p.order):
        while len(coming) > 0 and coming[0][0] <= now:
            _, group, device = heappop(coming)
            if s.device_of[group] < 0:
                heappush(ready[device], (p.position[group], group))
        group, device = _choice(now, p, s, ready)
        if group < 0:
            now = _next_time(now, s, coming)
            continue
        s.device_of[group] = device
        begin = max(now, s.free[device], s.arrival[group, device])
        s.finish[group] = s.free[device] = begin + groups.seconds[group, device]
        s.awaited[device] = p.favourite[group]
        s.awake[device] = s.finish[group] + p.patience[group]
        if not groups.fixed[group]:
            s.room[device] -= groups.memory[group]
        placed += 1
        for edge in range(p.output_start[group], p.output_start[group + 1]):
            target = p.output_target[edge]
            s.waiting[target] -= 1
            if s.waiting[target] == 0:
                _announce(target, p, s, coming)


@inner(cache=True)
def _announce(group: int, p: _Task, s: _State, coming: Any) -> None:
    """Works out when a group's inputs are on each device, now that all producers have one."""
    groups, urgent = p.groups, 0.0
    for device in range(len(s.free)):
        there = 0.0
        for edge in range(groups.input_start[group], groups.input_start[group + 1]):
            source = groups.input_source[edge]
            origin = s.device_of[source]
            carried = p.startup[origin, device] + groups.input_bytes[edge] * p.pace[origin, device]
            there = max(there, s.finish[source] + carried)
        s.arrival[group, device] = there
        if p.preferred[group, device]:
            heappush(coming, (there, group, device))
            urgent = max(urgent, there)
    heappush(coming, (urgent, group, len(s.free)))


@inner(cache=True)
def _choice(now: float, p: _Task, s: _State, ready: Any) -> tuple[int, int]:
    """The pair that starts next at the time `now`; group -1 if there is none."""
    num_devices = len(s.free)
    best_group, best_device = -1, -1
    best = (3, 0, 0.0)  # waiting devices have rank 2, so that urgent groups go to free ones
    for device in range(num_devices):
        if s.free[device] > now:
            continue
        child = s.awaited[device]
        waits = child >= 0 and s.device_of[child] < 0 and now < s.awake[device]
        if waits and _has_room(child, device, p, s):
            if s.waiting[child] == 0 and s.arrival[child, device] <= now:
                group, rank = child, 1
            else:
                heap = ready[num_devices]
                while len(heap) > 0 and s.device_of[heap[0][1]] >= 0:
                    heappop(heap)
                group, rank = heap[0][1] if len(heap) > 0 else -1, 2
                if group >= 0 and not _has_room(group, device, p, s):
                    group = -1
        else:
            heap = ready[device]
            while len(heap) > 0 and _is_no_choice(heap[0][1], device, p, s):
                heappop(heap)
            group, rank = heap[0][1] if len(heap) > 0 else -1, 1
        if group >= 0:
            key = (rank, p.position[group], s.arrival[group, device])
            if key < best:
                best, best_group, best_device = key, group, device
    if best_group >= 0 and not _has_room(best_group, best_device, p, s):
        best_device = _anywhere(best_group, p.groups, s)
    return best_group, best_device


@inner(cache=True)
def _has_room(group: int, device: int, p: _Task, s: _State) -> bool:
    fits = p.groups.fixed[group] or s.room[device] >= p.groups.memory[group]
    return p.preferred[group, device] and fits


@inner(cache=True)
def _is_no_choice(group: int, device: int, p: _Task, s: _State) -> bool:
    """Whether a group has a device, or no room on this one but on another that it prefers."""
    if s.device_of[group] >= 0 or _has_room(group, device, p, s):
        return s.device_of[group] >= 0
    for other in range(len(s.free)):  # noqa: SIM110 (numba knows no generators of such)
        if _has_room(group, other, p, s):
            return True
    return False


@inner(cache=True)
def _anywhere(group: int, groups: costs.Groups, s: _State) -> int:
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
def _next_time(now: float, s: _State, coming: Any) -> float:
    """The next instant at which another pair may be able to start."""
    then = coming[0][0] if len(coming) > 0 else np.inf
    for device in range(len(s.free)):
        if s.free[device] > now:
            then = min(then, s.free[device])
        elif s.awaited[device] >= 0 and s.awake[device] > now:
            then = min(then, s.awake[device])
    return then
