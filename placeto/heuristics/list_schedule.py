"""List scheduling by earliest finish under memory limits, in an order that is given."""

from typing import NamedTuple

import numpy as np

from placeto.heuristics.costs import Groups, free_room, groups_of
from placeto.problem import PlacementProblem
from placeto.simulation.parts import end_seconds
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner, njit


class ListSchedule(NamedTuple):
    """Where a list schedule puts the groups, and when they finish if no more holds them up."""

    devices: Ints  # (num_groups,)
    finish: Floats  # (num_groups,) s


class _Channels(NamedTuple):
    between: Ints  # (num_devices, num_devices)
    bandwidth: Floats  # (num_channels,) bytes/s
    latency: Floats  # (num_channels,) s
    overhead: Floats  # (num_channels,) s
    cost_start: Ints  # (2 num_channels + 1,) of `costs`, see `ClusterArrays`
    costs: Floats  # (num_costs, 3)
    queues: bool  # whether each carries one transfer after another


class _Gaps(NamedTuple):
    """Idle times of each device in order of time; the last one never ends."""

    start: Floats  # (num_devices, capacity) s
    end: Floats  # (num_devices, capacity) s
    number: Ints  # (num_devices,) how many there are


class _Work(NamedTuple):
    """What compiled code works on; to make it there takes long to compile."""

    free: Floats  # (num_channels,) s, from when on each is
    asked: Floats  # (num_channels,) s, the same if the group at hand went to a device
    inputs: Ints  # (num_inputs,) those of the group at hand, by when they are produced


def list_schedule(
    problem: PlacementProblem, order: Ints, *, insertion: bool, queues: bool = True
) -> ListSchedule:
    """Gives each group in turn the device on which it finishes first.

    Its inputs are transferred once they are produced, and are there after the slowest part of that;
    what else it keeps devices from is left out. Only devices that have room for all of the
    group's parameters and outputs are considered; where none has, the one with the most room is
    taken. Groups with no choice take their room before all others.

    The order is of (num_groups,) groups, each after those that it reads from. With `insertion` a
    group may run in an idle time between two that were placed before; with `queues` a channel
    carries the transfers that it is given one after another, else none hinders another.
    """
    p, groups = problem.arrays, groups_of(problem)
    channels = _Channels(
        p.channel_between, p.bandwidth, p.latency, p.overhead, p.cost_start, p.costs, queues
    )
    schedule = ListSchedule(np.zeros(problem.num_groups, dtype=np.int64), np.zeros(len(order)))
    shape = problem.num_devices, problem.num_groups + 1 if insertion else 1
    number = np.ones(problem.num_devices, dtype=np.int64)
    gaps = _Gaps(np.zeros(shape), np.full(shape, np.inf), number)
    free, inputs = np.zeros((2, len(p.bandwidth))), np.zeros_like(groups.input_source)
    work = _Work(free[0], free[1], inputs)
    _place(order, groups, channels, free_room(problem), insertion, schedule, gaps, work)
    return schedule


@njit(cache=True)
def _place(
    order: Ints, groups: Groups, channels: _Channels, room: Ints, insertion: bool, s: ListSchedule,
    gaps: _Gaps, work: _Work,
) -> None:  # fmt: skip
    num_devices = len(room)
    for group in order:
        count = _by_finish(groups, group, s.finish, work.inputs)
        # Where there is room, or where most of it is.
        roomiest, fits = -1, groups.fixed[group]
        for device in range(num_devices):
            if groups.allowed[group, device]:
                if roomiest < 0 or room[device] > room[roomiest]:
                    roomiest = device
                fits |= room[device] >= groups.memory[group]
        chosen, chosen_gap, begun, earliest = -1, 0, 0.0, np.inf
        for device in range(num_devices):
            if not groups.allowed[group, device]:
                continue
            if not fits and device != roomiest:
                continue
            if fits and not groups.fixed[group] and room[device] < groups.memory[group]:
                continue
            for channel in range(len(work.free)):
                work.asked[channel] = work.free[channel]
            there = _transferred(device, groups, work.inputs, count, s, channels, work.asked)
            seconds = groups.seconds[group, device]
            gap = _first_gap(gaps, device, there, seconds)
            begin = max(there, gaps.start[device, gap])
            if chosen < 0 or begin + seconds < earliest:
                chosen, chosen_gap, begun, earliest = device, gap, begin, begin + seconds
        s.devices[group] = chosen
        _transferred(chosen, groups, work.inputs, count, s, channels, work.free)
        s.finish[group] = earliest
        if insertion:
            _fill(gaps, chosen, chosen_gap, begun, earliest)
        else:
            gaps.start[chosen, 0] = earliest
        if not groups.fixed[group]:
            room[chosen] -= groups.memory[group]


@inner(cache=True)
def _by_finish(groups: Groups, group: int, finish: Floats, inputs: Ints) -> int:
    """Fills in the inputs of a group by when they are produced, in a stable order: how many.

    By insertion: they are few, and mostly in this order already.
    """
    begin, end = groups.input_start[group], groups.input_start[group + 1]
    for index in range(begin, end):
        place = index - begin
        while (
            place > 0
            and finish[groups.input_source[inputs[place - 1]]] > finish[groups.input_source[index]]
        ):
            inputs[place] = inputs[place - 1]
            place -= 1
        inputs[place] = index
    return end - begin


@inner(cache=True)
def _first_gap(gaps: _Gaps, device: int, ready: float, seconds: float) -> int:
    """The first idle time of a device that holds so many seconds from `ready` on."""
    gap, beyond = 0, gaps.number[device]
    while gap < beyond:
        middle = (gap + beyond) // 2
        if gaps.end[device, middle] < ready:
            gap = middle + 1
        else:
            beyond = middle
    while max(ready, gaps.start[device, gap]) + seconds > gaps.end[device, gap]:
        gap += 1
    return gap


@inner(cache=True)
def _fill(gaps: _Gaps, device: int, gap: int, begin: float, finish: float) -> None:
    """Takes [begin, finish] out of an idle time."""
    if begin == finish:
        return
    starts, ends, count = gaps.start[device], gaps.end[device], gaps.number[device]
    before, after = begin > starts[gap], finish < ends[gap]
    if before and after:
        for other in range(count, gap, -1):
            starts[other], ends[other] = starts[other - 1], ends[other - 1]
        ends[gap], starts[gap + 1] = begin, finish
        gaps.number[device] += 1
    elif before:
        ends[gap] = begin
    elif after:
        starts[gap] = finish
    else:
        for other in range(gap, count - 1):
            starts[other], ends[other] = starts[other + 1], ends[other + 1]
        gaps.number[device] -= 1


@inner(cache=True)
def _transferred(
    device: int, groups: Groups, inputs: Ints, count: int, s: ListSchedule, channels: _Channels,
    free: Floats,
) -> float:  # fmt: skip
    """When the first `count` inputs are on a device; books the transfers in `free` channels."""
    latest = 0.0
    for index in range(count):
        source = groups.input_source[inputs[index]]
        there = s.finish[source]
        if s.devices[source] != device:
            channel = channels.between[s.devices[source], device]
            begin = max(there, free[channel]) if channels.queues else there
            size = groups.input_bytes[inputs[index]]
            sent = begin + size / channels.bandwidth[channel]
            free[channel] = sent + channels.overhead[channel]
            if len(channels.costs) > 0:
                for row in (2 * channel, 2 * channel + 1):
                    kept = end_seconds(channels.cost_start, channels.costs, row, size)
                    sent = max(sent, begin + kept)
            there = sent + channels.latency[channel]
        latest = max(latest, there)
    return latest
