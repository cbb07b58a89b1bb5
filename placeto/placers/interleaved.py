"""Several stages of a pipeline on each device, which take turns: the interleaved 1F1B schedule.

Of `chunks` stages a device, stage s is on device s modulo the number of devices, so that a
microbatch goes around the devices several times and fills the pipeline sooner, for more transfers
(Narayanan et al. 2021, arXiv:2104.04473). What each device does, and in which order, is that of
`torch.distributed.pipelining.ScheduleInterleaved1F1B`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placeto.graph import BACKWARD, UPDATE, ComputationGraph
from placeto.heuristics.stages import Chain, device_orders
from placeto.objective import staged_worth
from placeto.problem import PlacementProblem
from placeto.simulation.stages import interleaved_passes
from placeto.support.arrays import Ints

MOST_CHUNKS = 4


@dataclass(frozen=True, eq=False)
class Interleaved:
    """Stages that take turns on their devices.

    Attributes:
        problem: with the ranks of the schedule as its order.
        devices: (num_groups,) where each group is.
        worth: bytes over the memory of the devices, and seconds; less is better.
        evaluations: how many placements were simulated.
    """

    problem: PlacementProblem
    devices: Ints
    worth: tuple[float, float]
    evaluations: int


def divides(microbatches: int, devices: int) -> bool:
    """Whether PyTorch has the schedule: the microbatches are divided into equal rounds."""
    return microbatches % max(1, microbatches // devices) == 0


def turns(graph: ComputationGraph, stage_of_op: Ints, devices: int) -> Ints:
    """(num_ops,) ranks: the place of an op's pass among those of its device.

    Args:
        graph: of several microbatches.
        stage_of_op: (num_ops,) from 0, of whole multiples of `devices` stages.
        devices: how many there are.
    """
    chunks = (int(stage_of_op.max()) + 1) // devices
    count = graph.num_microbatches
    place = np.zeros((chunks * devices, count, 2), dtype=np.int64)
    for device in range(devices):
        for number, each in enumerate(interleaved_passes(device, devices, chunks, count)):
            place[each.stage, each.microbatch, int(each.forward)] = number + 1
    forward = (graph.phase != BACKWARD).astype(np.int64)
    ranks = place[stage_of_op, np.maximum(graph.microbatch, 0), forward]
    # What belongs to all microbatches, such as reads of weights, goes before them; updates after.
    ranks[graph.microbatch < 0] = 0
    ranks[graph.phase == UPDATE] = 2 * chunks * count + 1
    return ranks


def best_interleaved(problem: PlacementProblem) -> Interleaved | None:
    """The fastest that is found of those that fit in memory; None if there can be or is none.

    Cuts that balance the stages, of two to four stages a device, are moved one by one as long as
    the simulated step becomes faster. Where all of these send past the next stage, which PyTorch
    refuses, only cuts are left that nothing from further back crosses.

    Args:
        problem: its groups are a row of which a stretch is a stage, see `stage_units`; all of its
            devices are used.
    """
    count = problem.num_devices
    if count < 2 or not divides(problem.graph.num_microbatches, count):
        return None
    found = _of_row(problem)
    if found is None:
        stretch = stretches(problem)
        found = _of_row(replace(problem, grouping=stretch[problem.op_group]))
        if found is not None:
            turned = replace(found.problem, grouping=problem.op_group)
            found = replace(found, problem=turned, devices=found.devices[stretch])
    return found


def _of_row(problem: PlacementProblem) -> Interleaved | None:
    """The fastest of two to four stages a device, of a row of groups, that runs; None if none."""
    found: list[Interleaved] = []
    count = problem.num_devices
    chain = Chain(problem, np.arange(problem.num_groups))
    for chunks in range(2, MOST_CHUNKS + 1):
        if problem.num_groups < chunks * count:
            break
        balanced = [
            (*chain.cuts(order * chunks), order * chunks) for order in device_orders(problem, count)
        ]
        _, cuts, order = min(balanced, key=lambda each: each[0])
        found.append(_descended(problem, _apart(cuts, problem.num_groups), order))
    best = min(found, key=lambda each: each.worth, default=None)
    return None if best is None or np.isinf(best.worth[1]) else best


def stretches(problem: PlacementProblem) -> Ints:
    """(num_groups,) groups of a row joined, wherever a tensor from further back than one crosses.

    No tensor crosses two of the cuts that are left.
    """
    graph = problem.graph
    source = problem.op_group[graph.tensor_producer[graph.edge_tensor]]
    target = problem.op_group[graph.edge_consumer]
    low, high = np.minimum(source, target), np.maximum(source, target)
    crossed = np.zeros(problem.num_groups + 1, dtype=np.int64)
    # A tensor to group t from group s crosses the cuts before s + 1, which stays one, to before t.
    far = high > low + 1
    np.add.at(crossed, low[far] + 2, 1)
    np.add.at(crossed, high[far] + 1, -1)
    joined: Ints = np.cumsum(np.cumsum(crossed)[:-1] == 0) - 1
    return joined


def _descended(problem: PlacementProblem, cuts: Ints, order: tuple[int, ...]) -> Interleaved:
    """The stages on devices in an order that cuts lead to, moved one by one."""
    best, tried = _interleaved(problem, cuts, order), {tuple(cuts.tolist())}
    better = True
    while better:
        better = False
        for near in _near(cuts, problem.num_groups):
            if tuple(near.tolist()) not in tried:
                tried.add(tuple(near.tolist()))
                each = _interleaved(problem, near, order)
                if each.worth < best.worth:
                    best, cuts, better = each, near, True
                    break
    return replace(best, evaluations=len(tried))


def _apart(cuts: Ints, count: int) -> Ints:
    """Cuts of which none leaves a stage empty."""
    places = np.arange(1, len(cuts) + 1)
    least = np.maximum.accumulate(np.maximum(cuts, places) - places) + places
    return np.minimum(least, count - places[::-1])


def _near(cuts: Ints, count: int) -> Iterator[Ints]:
    ends = [0, *cuts.tolist(), count]
    for number, cut in enumerate(cuts.tolist()):
        for step in (-1, 1):
            if ends[number] < cut + step < ends[number + 2]:
                moved = cuts.copy()
                moved[number] += step
                yield moved


def _interleaved(problem: PlacementProblem, cuts: Ints, order: tuple[int, ...]) -> Interleaved:
    stage = np.searchsorted(cuts, np.arange(problem.num_groups), side="right")
    ranks = turns(problem.graph, stage[problem.op_group], problem.num_devices)
    turned, devices = replace(problem, order=ranks), np.array(order)[stage]
    return Interleaved(turned, devices, staged_worth(turned, devices, "interleaved"), 1)
