"""A pipelined step as people draw it: blocks of microbatches, the bubble, what is kept alive."""

from dataclasses import dataclass

import numpy as np

from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.problem import PlacementProblem
from placeto.simulation.device_time import device_spans
from placeto.simulation.schedule import Schedule
from placeto.support.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Blocks:
    """Ops of one microbatch and phase that a device runs one after the other, by device and start.

    Attributes:
        device: (num_blocks,) where.
        microbatch: (num_blocks,) whose; -1 for updates.
        phase: (num_blocks,) `FORWARD`, `BACKWARD` or `UPDATE`.
        ops: (num_blocks,) how many that take time.
        start: (num_blocks,) seconds, of the first op.
        finish: (num_blocks,) seconds, of the last op.
    """

    device: Ints
    microbatch: Ints
    phase: Ints
    ops: Ints
    start: Floats
    finish: Floats

    def __len__(self) -> int:
        return len(self.device)


def pipeline_blocks(
    problem: PlacementProblem, schedule: Schedule, longest_pause: float = np.inf
) -> Blocks:
    """The blocks of a step.

    Ops that take no time are left out, and so are those that belong to all microbatches, such as
    reads of weights, unless they are of the update.

    Args:
        problem: what was placed.
        schedule: its step.
        longest_pause: seconds; a longer pause between two ops ends a block.
    """
    graph = problem.graph
    shown = (graph.microbatch >= 0) | (graph.phase == UPDATE)
    ops = np.flatnonzero(shown & (schedule.finish > schedule.start))
    device = schedule.devices[problem.op_group[ops]]
    order = np.lexsort((schedule.start[ops], device))
    ops, device = ops[order], device[order]
    start, finish = schedule.start[ops], schedule.finish[ops]
    keys = np.stack([device, graph.microbatch[ops], graph.phase[ops]])
    ends = (keys[:, 1:] != keys[:, :-1]).any(axis=0) | (start[1:] - finish[:-1] > longest_pause)
    first = np.flatnonzero(np.append(True, ends)[: len(ops)])
    last = np.append(first[1:], len(ops))[: len(first)] - 1
    device, microbatch, phase = keys[:, first]
    return Blocks(device, microbatch, phase, last - first + 1, start[first], finish[last])


def bubble_share(problem: PlacementProblem, schedule: Schedule) -> float:
    """The bubble: for which share of a step the devices that run anything are free.

    That is 1 - busy / (devices x step time). A device is busy while an op runs, while it sends or
    receives, and for the launch overhead after an op. 0 where no op takes time; every op has to
    finish.
    """
    used = [
        seconds
        for seconds in (spans.seconds() for spans in device_spans(problem, schedule))
        if seconds["compute"] > 0
    ]
    busy = sum(each["compute"] + each["exchange"] + each["launch"] for each in used)
    return 1 - busy / (len(used) * schedule.step_time) if used else 0.0


def alive_microbatches(problem: PlacementProblem, schedule: Schedule) -> Ints:
    """(num_devices,) of how many microbatches at most a device keeps what backward will read.

    A microbatch is alive on a device from the start of its first forward op there to the finish of
    its last backward op there; where it has ops of one phase only, from the first to the last of
    these. Ops that take no time do not count.
    """
    graph, count = problem.graph, problem.graph.num_microbatches
    counts = (graph.microbatch >= 0) & (graph.phase != UPDATE)
    ops = np.flatnonzero(counts & (schedule.finish > schedule.start))
    # Of each device, microbatch and phase: when it begins and when it has ended.
    shape = (problem.num_devices, count, 2)
    begin, end = np.full(shape, np.inf), np.full(shape, -np.inf)
    device = schedule.devices[problem.op_group[ops]]
    where = device, graph.microbatch[ops], graph.phase[ops]
    np.minimum.at(begin, where, schedule.start[ops])
    np.maximum.at(end, where, schedule.finish[ops])
    there = begin < end
    born = np.where(there[..., FORWARD], begin[..., FORWARD], begin[..., BACKWARD])
    dead = np.where(there[..., BACKWARD], end[..., BACKWARD], end[..., FORWARD])
    # How many have been born and are not dead when one is born; what dies just then is dead.
    now, seen = born[:, :, None], there.any(axis=2)
    alive = np.where(born[:, None, :] <= now, dead[:, None, :] > now, False).sum(axis=2)
    most: Ints = np.where(seen, alive, 0).max(axis=1)
    return most
