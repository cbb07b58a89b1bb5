"""Loads of the busiest resource that no completion of a partial placement can be below."""

from typing import NamedTuple

import numpy as np
from numba import prange

from placeto.bounds.relaxed import device_classes
from placeto.bounds.work import best_prices
from placeto.problem import PlacementProblem
from placeto.simulation.loads import Loads, add_up, loads_of, num_resources
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import inner, njit


class LoadRelaxation(NamedTuple):
    """What the bounds read of a problem beside its `Loads`."""

    work: Floats  # (num_groups, num_devices) s; infinite where a group may not be
    weights: Floats  # (num_weights, num_devices) of the devices' seconds, each row adds up to 1
    least: Floats  # (num_weights, num_groups) s, weighted, of a group where that is least
    memory_limit: Ints  # (num_devices,) bytes


def load_relaxation_of(problem: PlacementProblem) -> tuple[Loads, LoadRelaxation]:
    """What the bounds of a problem are worked out from."""
    t, classes = loads_of(problem), device_classes(problem)
    prices = best_prices(problem, classes, np.zeros(len(classes.size)))
    weights = np.stack([(time / classes.size)[classes.of_device] for time, _ in prices])
    finite = np.where(problem.allowed, t.work, 0.0)
    weighted = np.where(problem.allowed, weights[:, None] * finite, np.inf)
    work = np.where(problem.allowed, t.work, np.inf)
    return t, LoadRelaxation(work, weights, weighted.min(axis=2), problem.memory_limit)


@njit(cache=True, parallel=True)
def load_bounds(t: Loads, r: LoadRelaxation, many: Ints) -> tuple[Floats, Ints]:
    """Bounds of (batch, num_groups) placements in which groups may be `UNPLACED`.

    The busiest resource with what is placed, and transfers between what is; work shared out over
    all devices, by weights; and of each unplaced group, the least that it would make of a device.

    Returns:
        (batch,) seconds a microbatch that no completion takes less than, but for rounding, and
        (batch,) bytes that the memory of every completion exceeds the limits by.
    """
    seconds = np.empty(len(many))
    excess = np.empty(len(many), np.int64)
    for row in prange(len(many)):
        seconds[row] = _least_seconds(t, r, many[row])
        excess[row] = _least_excess(t, r, many[row])
    return seconds, excess


@inner(cache=True)
def _least_seconds(t: Loads, r: LoadRelaxation, devices: Ints) -> float:
    num_groups, num_devices = r.work.shape
    loads = np.zeros(num_resources(t))
    add_up(t, devices, np.zeros(num_devices + len(t.kind), np.bool_), loads)
    most = loads.max()
    for number in range(len(r.weights)):
        total = 0.0
        for device in range(num_devices):
            total += r.weights[number, device] * loads[device]
        for group in range(num_groups):
            if devices[group] < 0:
                total += r.least[number, group]
        most = max(most, total)
    for group in range(num_groups):
        if devices[group] < 0:
            most = max(most, (loads[:num_devices] + r.work[group]).min())
    return float(most)


@inner(cache=True)
def _least_excess(t: Loads, r: LoadRelaxation, devices: Ints) -> int:
    over = -r.memory_limit
    for group in range(len(devices)):
        if devices[group] >= 0:
            over[devices[group]] += t.memory[group]
    return int(np.maximum(over, 0).sum())
