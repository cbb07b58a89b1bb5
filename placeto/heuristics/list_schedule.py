"""List scheduling by earliest finish under memory limits, in an order that is given."""

from typing import NamedTuple

import numpy as np

from placeto.heuristics.costs import Groups, free_room, groups_of
from placeto.problem import PlacementProblem
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
    queues: bool  # whether each carries one transfer after another


class _Gaps(NamedTuple):
    """Idle times of each device in order of time; the last one never ends."""

    start: Floats  # (num_devices, capacity) s
    end: Floats  # (num_devices, capacity) s
    number: Ints  # (num_devices,) how many there are


def list_schedule(
    problem: PlacementProblem, order: Ints, *, insertion: bool, queues: bool = True
) -> ListSchedule:
    """Gives each group in turn the device on which it finishes first.

    Its inputs are transferred once they are produced. Only devices that have room for all of the
    group's parameters and outputs are considered; where none has, the one with the most room is
    taken. Groups with no choice take their room before all others.

    The order is of (num_groups,) groups, each after those that it reads from. With `insertion` a
    group may run in an idle time between two that were placed before; with `queues` a channel
    carries the transfers that it is given one after another, else none hinders another.
    """
    p, groups = problem.arrays, groups_of(problem)
    channels = _Channels(p.channel_between, p.bandwidth, p.latency, p.overhead, queues)
    schedule = ListSchedule(np.zeros(problem.num_groups, dtype=np.int64), np.zeros(len(order)))
    _place(order, groups, channels, free_room(problem), insertion, schedule)
    return schedule


@njit(cache=True)
def _place(
    order: Ints, groups: Groups, channels: _Channels, room: Ints, insertion: bool, s: ListSchedule
) -> None:
    num_groups, num_devices = groups.allowed.shape
    shape = num_devices, num_groups + 1 if insertion else 1
    gaps = _Gaps(np.zeros(shape), np.full(shape, np.inf), np.ones(num_devices, np.int64))
    channel_free = np.zeros(len(channels.bandwidth))
    for group in order:
        begin, end = groups.input_start[group], groups.input_start[group + 1]
        sources, sizes = groups.input_source[begin:end], groups.input_bytes[begin:end]
        by_finish = _by_finish(sources, s.finish)
        sources, sizes = sources[by_finish], sizes[by_finish]
        candidates = np.flatnonzero(groups.allowed[group])
        if not groups.fixed[group]:
            fitting = candidates[room[candidates] >= groups.memory[group]]
            roomiest = np.argmax(room[candidates])
            candidates = fitting if len(fitting) else candidates[roomiest : roomiest + 1]
        chosen, chosen_gap, begun, earliest = candidates[0], 0, 0.0, np.inf
        for device in candidates:
            there = _transferred(device, sources, sizes, s, channels, channel_free.copy())
            seconds = groups.seconds[group, device]
            gap = _first_gap(gaps, device, there, seconds)
            begin_here = max(there, gaps.start[device, gap])
            if begin_here + seconds < earliest:
                chosen, chosen_gap = device, gap
                begun, earliest = begin_here, begin_here + seconds
        s.devices[group] = chosen
        _transferred(chosen, sources, sizes, s, channels, channel_free)
        s.finish[group] = earliest
        if insertion:
            _fill(gaps, chosen, chosen_gap, begun, earliest)
        else:
            gaps.start[chosen, 0] = earliest
        if not groups.fixed[group]:
            room[chosen] -= groups.memory[group]


@inner(cache=True)
def _by_finish(sources: Ints, finish: Floats) -> Ints:
    """(num_sources,) the sources by when they finish, in a stable order.

    By insertion: they are few, and mostly in this order already. NumPy's sort takes numba a second
    to compile.
    """
    order = np.arange(len(sources))
    for index in range(1, len(sources)):
        place = index
        while place > 0 and finish[sources[order[place - 1]]] > finish[sources[index]]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = index
    return order


@inner(cache=True)
def _first_gap(gaps: _Gaps, device: int, ready: float, seconds: float) -> int:
    """The first idle time of a device that holds so many seconds from `ready` on."""
    ends = gaps.end[device, : gaps.number[device]]
    gap = int(np.searchsorted(ends, ready))
    while max(ready, gaps.start[device, gap]) + seconds > ends[gap]:
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
    device: int, sources: Ints, sizes: Ints, s: ListSchedule, channels: _Channels, free: Floats
) -> float:
    """When the tensors of `sources` are on a device; books the transfers in `free` channels."""
    latest = 0.0
    for source, size in zip(sources, sizes):  # noqa: B905 (numba knows no strict)
        there = s.finish[source]
        if s.devices[source] != device:
            channel = channels.between[s.devices[source], device]
            begin = max(there, free[channel]) if channels.queues else there
            sent = begin + size / channels.bandwidth[channel]
            free[channel] = sent + channels.overhead[channel]
            there = sent + channels.latency[channel]
        latest = max(latest, there)
    return latest
