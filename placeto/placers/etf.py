"""Earliest finish under memory limits."""

import numpy as np

from placeto.graph import Floats, Ints
from placeto.placers.base import Incumbent
from placeto.problem import PlacementProblem


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
    p = problem.arrays
    inputs = _inputs(problem)
    seconds, memory = problem.group_seconds, problem.group_memory
    room = problem.memory_limit.copy()
    fixed = problem.allowed.sum(axis=1) == 1
    # Those that have no choice take their room before any other chooses.
    np.subtract.at(room, problem.allowed[fixed].argmax(axis=1), memory[fixed])
    device_free = np.zeros(problem.num_devices)
    channel_free = np.zeros(len(p.bandwidth))
    finish = np.zeros(problem.num_groups)
    device_of = np.zeros(problem.num_groups, dtype=np.int64)

    def ready_at(group: int, device: int, channel_free: Floats) -> float:
        """When the inputs of a group can be on a device; books the transfers on the channels."""
        ready = 0.0
        for source, size in sorted(inputs[group], key=lambda edge: finish[edge[0]]):
            there = finish[source]
            if device_of[source] != device:
                channel = p.channel_between[device_of[source], device]
                sent = max(there, channel_free[channel]) + size / p.bandwidth[channel]
                channel_free[channel] = sent + p.overhead[channel]
                there = sent + p.latency[channel]
            ready = max(ready, there)
        return ready

    for group in problem.group_order.tolist():
        allowed = np.flatnonzero(problem.allowed[group])
        fitting = allowed if fixed[group] else allowed[room[allowed] >= memory[group]]
        if len(fitting) == 0:
            fitting = allowed[[room[allowed].argmax()]]
        finishes = [
            max(ready_at(group, device, channel_free.copy()), device_free[device])
            + seconds[group, device]
            for device in fitting.tolist()
        ]
        device = int(fitting[np.argmin(finishes)])
        device_of[group] = device
        ready_at(group, device, channel_free)
        finish[group] = device_free[device] = min(finishes)
        if not fixed[group]:
            room[device] -= memory[group]
    return device_of


def _inputs(problem: PlacementProblem) -> list[list[tuple[int, int]]]:
    """For each group, the groups before it in the order that feed it, and how many bytes."""
    position = problem.group_position
    inputs: list[list[tuple[int, int]]] = [[] for _ in range(problem.num_groups)]
    edges = zip(*(column.tolist() for column in problem.group_edges), strict=True)
    for source, target, size in edges:
        if position[source] < position[target]:
            inputs[target].append((source, size))
    return inputs
