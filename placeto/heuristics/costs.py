"""What heuristics reckon with: edges without cycles, mean costs, speeds and room of devices."""

from typing import NamedTuple

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats, Ints


class ForwardEdges(NamedTuple):
    """Edges of the group graph that point along `group_order`, sorted by (source, target).

    Where the group graph has cycles, the others are left out: a list schedule takes groups as
    wholes, one after another, and cannot wait for what comes later.
    """

    source: Ints  # (num_edges,)
    target: Ints  # (num_edges,)
    bytes: Ints  # (num_edges,)


class LinkCosts(NamedTuple):
    """Seconds that a transfer between two devices takes when no other is in its way.

    They are the start-up plus the bytes times the pace, as in the linear model of Baechi (Jeon et
    al. 2020). The start-up is the channel's latency and its overhead.
    """

    startup: Floats  # (num_devices, num_devices) s, 0 on the diagonal
    pace: Floats  # (num_devices, num_devices) s/byte, 0 on the diagonal


def forward_edges(problem: PlacementProblem) -> ForwardEdges:
    """The edges that point along the problem's order of groups."""
    source, target, size = problem.group_edges
    along = problem.group_position[source] < problem.group_position[target]
    return ForwardEdges(source[along], target[along], size[along])


def links(problem: PlacementProblem) -> LinkCosts:
    """Start-up and pace between each two devices."""
    arrays = problem.arrays
    channel = problem.cluster.channel_between
    apart = channel >= 0
    startup, pace = np.zeros(channel.shape), np.zeros(channel.shape)
    startup[apart] = (arrays.latency + arrays.overhead)[channel[apart]]
    pace[apart] = 1 / arrays.bandwidth[channel[apart]]
    return LinkCosts(startup, pace)


def mean_transfer_seconds(problem: PlacementProblem, size: Ints) -> Floats:
    """(n,) seconds to carry (n,) bytes, the mean over the ordered pairs of different devices."""
    between = links(problem)
    pairs = max(problem.num_devices * (problem.num_devices - 1), 1)
    return between.startup.sum() / pairs + size * (between.pace.sum() / pairs)


def mean_seconds(problem: PlacementProblem) -> Floats:
    """(num_groups,) seconds of each group, the mean over the devices that it may be on."""
    seconds = np.where(problem.allowed, problem.group_seconds, 0.0)
    means: Floats = seconds.sum(axis=1) / problem.allowed.sum(axis=1)
    return means


def fastest_seconds(problem: PlacementProblem) -> Floats:
    """(num_groups,) seconds of each group on the fastest device that it may be on."""
    seconds: Floats = np.where(problem.allowed, problem.group_seconds, np.inf).min(axis=1)
    return seconds


def device_speeds(problem: PlacementProblem, devices: Ints) -> Floats:
    """(n,) speeds of (n,) devices at all groups that run on each of them; the fastest has 1."""
    seconds = problem.group_seconds[:, devices]
    totals = seconds[np.isfinite(seconds).all(axis=1)].sum(axis=0)
    if not totals.all():
        return np.ones(len(devices))
    speeds: Floats = totals.min() / totals
    return speeds


def fastest_devices(problem: PlacementProblem) -> Bools:
    """(num_devices,) whether a device is of the fastest kind."""
    devices = problem.cluster.devices
    speeds = device_speeds(problem, np.arange(len(devices)))
    kind = devices[int(speeds.argmax())].kind
    return np.array([device.kind == kind for device in devices])


def without_choice(problem: PlacementProblem) -> Bools:
    """(num_groups,) whether there is only one device that a group may be on."""
    only: Bools = problem.allowed.sum(axis=1) == 1
    return only


def free_room(problem: PlacementProblem) -> Ints:
    """(num_devices,) bytes left once the groups that have no choice are where they must be."""
    room = problem.memory_limit.copy()
    fixed = without_choice(problem)
    np.subtract.at(room, problem.allowed[fixed].argmax(axis=1), problem.group_memory[fixed])
    return room


def moved_where_allowed(problem: PlacementProblem, devices: Ints) -> Ints:
    """A placement in which groups that are where they may not be have moved.

    Args:
        problem: what is placed.
        devices: (num_groups,) device of each group.

    Returns:
        (num_groups,) the same but for these groups: each is on the device, of those that it may
        be on, with which it exchanges most bytes, of equals where it runs fastest.
    """
    moved = devices.copy()
    groups = np.arange(problem.num_groups)
    wrong = np.flatnonzero(~problem.allowed[groups, devices])
    exchanged = np.where(problem.allowed, exchanged_bytes(problem, devices), -1)[wrong]
    most = exchanged == exchanged.max(axis=1, keepdims=True, initial=0)
    seconds = np.where(most & problem.allowed[wrong], problem.group_seconds[wrong], np.inf)
    moved[wrong] = seconds.argmin(axis=1)
    return moved


def exchanged_bytes(problem: PlacementProblem, devices: Ints) -> Ints:
    """(num_groups, num_devices) bytes that each group exchanges with groups on each device."""
    source, target, size = problem.group_edges
    exchanged = np.zeros((problem.num_groups, problem.num_devices), dtype=np.int64)
    np.add.at(exchanged, (source, devices[target]), size)
    np.add.at(exchanged, (target, devices[source]), size)
    return exchanged
