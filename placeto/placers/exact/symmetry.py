"""Devices that could as well swap their names."""

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints

# Seconds, of the longest op, under which an op or a transfer may be over in the instant it starts.
INSTANT = 1e-12


def interchangeable_devices(problem: PlacementProblem) -> Ints:
    """Which devices are interchangeable: swapping any two of a class changes no step time.

    Two devices are when they run every op in the same time, hold as much, may have the same
    groups, and the channels are the same after the swap. Swaps that share a device make all
    permutations of their devices, so that classes are complete.

    The simulator takes the devices one by one only where ops of no duration are concerned. What
    these send can overtake within an instant, on a channel with several sources or by a transfer
    that takes no time; where that may happen, each device is a class of its own.

    Returns:
        (num_devices,) the lowest-numbered device of each one's class.
    """
    classes = np.arange(problem.num_devices)
    if _numbers_matter(problem):
        return classes
    for device in range(problem.num_devices):
        for lower in range(device):
            if classes[lower] == lower and _interchangeable(problem, lower, device):
                classes[device] = lower
                break
    return classes


def _interchangeable(problem: PlacementProblem, one: int, other: int) -> bool:
    p = problem.arrays
    of_device = (p.op_seconds.T, problem.allowed.T, p.launch_overhead, problem.memory_limit)
    if not all(np.array_equal(values[one], values[other]) for values in of_device):
        return False
    swapped = np.arange(problem.num_devices)
    swapped[[one, other]] = other, one
    apart = ~np.eye(problem.num_devices, dtype=bool)
    before = p.channel_between[apart]
    after = p.channel_between[np.ix_(swapped, swapped)][apart]
    # Each channel must become one channel; no two the same one, since the swap undoes itself.
    pairs = {*zip(before.tolist(), after.tolist(), strict=True)}
    if len(pairs) != len(set(before.tolist())):
        return False
    return all(
        np.array_equal(values[before], values[after])
        for values in (p.bandwidth, p.latency, p.overhead, p.multicast)
    )


def _numbers_matter(problem: PlacementProblem) -> bool:
    """Whether the lower-numbered of two devices can be first, at one instant, where it counts."""
    p, graph = problem.arrays, problem.graph
    seconds = np.where(np.isfinite(p.op_seconds), p.op_seconds, 0.0)
    instant = INSTANT * float(seconds.max())
    brief = np.flatnonzero((p.op_seconds <= instant).any(axis=1))
    producer = graph.tensor_producer[graph.edge_tensor]
    leaves = p.op_group[producer] != p.op_group[graph.edge_consumer]
    sent = np.unique(graph.edge_tensor[leaves & np.isin(producer, brief)])
    if not len(sent) or not len(p.bandwidth):
        return False
    sources = [
        (p.channel_between == channel).any(axis=1).sum() for channel in range(len(p.bandwidth))
    ]
    fastest = graph.tensor_bytes[sent].min() / p.bandwidth + p.latency
    return bool(max(sources) > 1 or fastest.min() <= instant)
