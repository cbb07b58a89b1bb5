"""What Placeto imitates: the best placements that a search found."""

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.support.arrays import Ints

MOST_BLOCKS = 8
SAME = 1e-9


def relabelled(problem: PlacementProblem, devices: Ints, first: int) -> Ints:
    """The placement with devices that are alike swapped, so that they come up in one order.

    Which of several like devices a search took first is chance, and nothing to imitate. Along the
    topological order the device `first` comes up before those like it, then the others by number.

    Args:
        problem: what is placed.
        devices: (num_groups,) a placement.
        first: a device.

    Returns:
        (num_groups,) devices; as they were if the swap would change the step time (their channels
        differ) or give a group a device that it may not be on.
    """
    free = sorted(range(problem.num_devices), key=lambda device: (device != first, device))
    label: dict[int, int] = {}
    for device in devices[problem.group_order].tolist():
        if device not in label:
            label[device] = next(other for other in free if _alike(problem, device, other))
            free.remove(label[device])
    swapped = np.array([label[device] for device in devices.tolist()])
    if not problem.allowed[np.arange(len(swapped)), swapped].all():
        return devices
    before, after = step_times(problem, np.stack([devices, swapped]))
    return swapped if abs(after - before) <= SAME * before else devices


def disturbed(problem: PlacementProblem, devices: Ints, rng: np.random.Generator) -> Ints:
    """The placement with up to `MOST_BLOCKS` runs along the topological order moved elsewhere."""
    result = devices.copy()
    order, groups = problem.group_order, problem.num_groups
    for _ in range(rng.integers(1, MOST_BLOCKS + 1)):
        length = int(max(groups / 2, 1) ** rng.random())
        begin = rng.integers(groups)
        block = order[begin : begin + length]
        device = int(rng.integers(problem.num_devices))
        result[block] = np.where(problem.allowed[block, device], device, result[block])
    return result


def _alike(problem: PlacementProblem, one: int, other: int) -> bool:
    first, second = problem.cluster.devices[one], problem.cluster.devices[other]
    return (first.kind, first.memory_bytes, first.launch_overhead_seconds) == (
        second.kind,
        second.memory_bytes,
        second.launch_overhead_seconds,
    )
