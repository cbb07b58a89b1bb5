"""Earliest finish under memory limits."""

from typing import NamedTuple

import numpy as np
from numba import njit

from placeto.graph import Floats, Ints
from placeto.order import compressed
from placeto.placers.base import Incumbent
from placeto.problem import Bools, PlacementProblem


def place_etf(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """List scheduling by earliest finish, with memory limits (m-ETF).

    Groups are taken in topological order. Each goes on the device on which it would finish
    earliest, counting the transfers of its inputs, of those devices that have room for all of its
    parameters and outputs. Earliest task first is by Hwang, Chow, Anger & Lee (1989, "Scheduling
    precedence graphs in systems with interprocessor communication times"); the memory limits by
    Jeon et al. (2020, "Baechi: fast device placement of machine learning graphs").
    """
    incumbent.offer(earliest_finish(incumbent.problem))


def earliest_finish(problem: PlacementProblem) -> Ints:
    """(num_groups,) devices by earliest finish under memory limits; see `place_etf`.

    Where the group graph has cycles, only its edges along the order count.
    """
    source, target, size = problem.group_edges
    along = np.flatnonzero(problem.group_position[source] < problem.group_position[target])
    start, inputs = compressed(problem.num_groups, target[along], along)
    groups = _Groups(
        problem.allowed,
        problem.group_seconds,
        problem.group_memory,
        start,
        source[inputs],
        size[inputs],
    )
    p = problem.arrays
    channels = _Channels(p.channel_between, p.bandwidth, p.latency, p.overhead)
    devices: Ints = _place(problem.group_order, groups, channels, problem.memory_limit)
    return devices


class _Groups(NamedTuple):
    allowed: Bools  # (num_groups, num_devices)
    seconds: Floats  # (num_groups, num_devices) s
    memory: Ints  # (num_groups,) bytes
    input_start: Ints  # (num_groups + 1,) compressed rows of inputs:
    input_source: Ints  # (num_inputs,) the group that each is from
    input_bytes: Ints  # (num_inputs,)


class _Channels(NamedTuple):
    between: Ints  # (num_devices, num_devices)
    bandwidth: Floats  # (num_channels,) bytes/s
    latency: Floats  # (num_channels,) s
    overhead: Floats  # (num_channels,) s


@njit(cache=True)
def _place(
    order: Ints, groups: _Groups, channels: _Channels, memory_limit: Ints
) -> Ints:  # pragma: no cover
    num_groups, num_devices = groups.allowed.shape
    room = memory_limit.copy()
    fixed = groups.allowed.sum(axis=1) == 1
    # Those that have no choice take their room before any other chooses.
    for group in np.flatnonzero(fixed):
        room[np.argmax(groups.allowed[group])] -= groups.memory[group]
    device_free = np.zeros(num_devices)
    channel_free = np.zeros(len(channels.bandwidth))
    finish = np.zeros(num_groups)
    device_of = np.zeros(num_groups, np.int64)
    for group in order:
        begin, end = groups.input_start[group], groups.input_start[group + 1]
        sources, sizes = groups.input_source[begin:end], groups.input_bytes[begin:end]
        by_finish = np.argsort(finish[sources], kind="mergesort")
        sources, sizes = sources[by_finish], sizes[by_finish]
        candidates = np.flatnonzero(groups.allowed[group])
        if not fixed[group]:
            fitting = candidates[room[candidates] >= groups.memory[group]]
            roomiest = np.argmax(room[candidates])
            candidates = fitting if len(fitting) else candidates[roomiest : roomiest + 1]
        chosen, earliest = candidates[0], np.inf
        for device in candidates:
            there = _transferred(
                device, sources, sizes, finish, device_of, channels, channel_free.copy()
            )
            end_here = max(there, device_free[device]) + groups.seconds[group, device]
            if end_here < earliest:
                chosen, earliest = device, end_here
        device_of[group] = chosen
        _transferred(chosen, sources, sizes, finish, device_of, channels, channel_free)
        finish[group] = device_free[chosen] = earliest
        if not fixed[group]:
            room[chosen] -= groups.memory[group]
    return device_of


@njit(cache=True)
def _transferred(
    device: int,
    sources: Ints,
    sizes: Ints,
    finish: Floats,
    device_of: Ints,
    channels: _Channels,
    channel_free: Floats,
) -> float:  # pragma: no cover
    """When the tensors of `sources` are on a device; books the transfers in `channel_free`."""
    latest = 0.0
    for source, size in zip(sources, sizes):  # noqa: B905 (numba knows no strict)
        there = finish[source]
        if device_of[source] != device:
            channel = channels.between[device_of[source], device]
            sent = max(there, channel_free[channel]) + size / channels.bandwidth[channel]
            channel_free[channel] = sent + channels.overhead[channel]
            there = sent + channels.latency[channel]
        latest = max(latest, there)
    return latest
