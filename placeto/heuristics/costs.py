"""What heuristics reckon with: edges without cycles, mean costs, speeds and room of devices."""

from typing import NamedTuple

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.alone import ends_seconds
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import compressed


class Groups(NamedTuple):
    """Groups as compiled list schedules read them."""

    allowed: Bools  # (num_groups, num_devices)
    fixed: Bools  # (num_groups,) whether only one device is allowed
    seconds: Floats  # (num_groups, num_devices) s
    memory: Ints  # (num_groups,) bytes
    input_start: Ints  # (num_groups + 1,) compressed rows of inputs, by forward edges:
    input_source: Ints  # (num_inputs,) the group that each is from
    input_bytes: Ints  # (num_inputs,)


def forward_edges(problem: PlacementProblem) -> tuple[Ints, Ints, Ints]:
    """Those of `group_edges` that point along `group_order`.

    Where the group graph has cycles, the others are left out: a list schedule takes groups as
    wholes, one after another, and cannot wait for what comes later.
    """
    source, target, size = problem.group_edges
    along = problem.group_position[source] < problem.group_position[target]
    return source[along], target[along], size[along]


def groups_of(problem: PlacementProblem) -> Groups:
    """The groups of a problem."""
    source, target, size = forward_edges(problem)
    start, inputs = compressed(problem.num_groups, target, np.arange(len(target)))
    fixed, seconds = without_choice(problem), problem.group_seconds
    return Groups(
        problem.allowed, fixed, seconds, problem.group_memory, start, source[inputs], size[inputs]
    )


def links(problem: PlacementProblem) -> tuple[Floats, Floats]:
    """What a transfer between two devices costs when no other is in its way: start-up and pace.

    Two (num_devices, num_devices) arrays, 0 on the diagonal: seconds of the channel's latency and
    its overhead, and seconds a byte besides, as in the linear model of Baechi (Jeon et al. 2020).
    Both have what the devices at its ends are kept from their ops for, by the line through what the
    graph's smallest and its largest tensor cost them.
    """
    arrays, channel = problem.arrays, problem.cluster.channel_between
    apart, size = channel >= 0, problem.graph.tensor_bytes
    startup, pace = np.zeros(channel.shape), np.zeros(channel.shape)
    startup[apart] = (arrays.latency + arrays.overhead)[channel[apart]]
    pace[apart] = 1 / arrays.bandwidth[channel[apart]]
    if len(arrays.costs) and len(size):
        channels = channel[apart]
        low, high = (
            np.add(*ends_seconds(arrays, channels, np.full(len(channels), some)))
            for some in (size.min(), size.max())
        )
        slope = (high - low) / max(int(size.max() - size.min()), 1)
        startup[apart] += low - slope * size.min()
        pace[apart] += slope
    return startup, pace


def mean_transfer_seconds(problem: PlacementProblem, size: Ints) -> Floats:
    """(n,) seconds to carry (n,) bytes, the mean over the ordered pairs of different devices."""
    startup, pace = links(problem)
    pairs = max(problem.num_devices * (problem.num_devices - 1), 1)
    return startup.sum() / pairs + size * (pace.sum() / pairs)


def mean_seconds(problem: PlacementProblem) -> Floats:
    """(num_groups,) seconds of each group, the mean over the devices that it may be on."""
    seconds = np.where(problem.allowed, problem.group_seconds, 0.0)
    return seconds.sum(axis=1) / problem.allowed.sum(axis=1)


def fastest_seconds(problem: PlacementProblem) -> Floats:
    """(num_groups,) seconds of each group on the fastest device that it may be on."""
    return np.where(problem.allowed, problem.group_seconds, np.inf).min(axis=1)


def device_speeds(problem: PlacementProblem, devices: Ints) -> Floats:
    """(n,) speeds of (n,) devices at all groups that run on each of them; the fastest has 1."""
    seconds = problem.group_seconds[:, devices]
    totals = seconds[np.isfinite(seconds).all(axis=1)].sum(axis=0)
    return totals.min() / totals if totals.all() else np.ones(len(devices))


def fastest_devices(problem: PlacementProblem) -> Bools:
    """(num_devices,) whether a device is of the fastest kind."""
    kinds = np.array([device.kind for device in problem.cluster.devices])
    return kinds == kinds[device_speeds(problem, np.arange(len(kinds))).argmax()]


def without_choice(problem: PlacementProblem) -> Bools:
    """(num_groups,) whether there is only one device that a group may be on."""
    return problem.allowed.sum(axis=1) == 1


def free_room(problem: PlacementProblem) -> Ints:
    """(num_devices,) bytes left once the groups that have no choice are where they must be."""
    room = problem.memory_limit.copy()
    fixed = without_choice(problem)
    np.subtract.at(room, problem.allowed[fixed].argmax(axis=1), problem.group_memory[fixed])
    return room


def moved_where_allowed(problem: PlacementProblem, devices: Ints) -> Ints:
    """(num_groups,) devices, where groups that are where they may not be have moved.

    Each of these is then on the device, of those that it may be on, with which it exchanges most
    bytes, of equals where it runs fastest.
    """
    moved = devices.copy()
    wrong = np.flatnonzero(~problem.allowed[np.arange(problem.num_groups), devices])
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
