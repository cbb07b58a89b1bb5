"""A CP-SAT model of assignment: which groups are on which device, with memory and work."""

from typing import NamedTuple

import numpy as np

from placeto.bounds.memory import group_parameters, least_memory
from placeto.graph import Floats, Ints
from placeto.placers.exact.cp_sat import cp_model
from placeto.placers.exact.symmetry import device_classes
from placeto.problem import PlacementProblem

TICKS = 2**24  # at least so many in the step time of the incumbent


class Assignment(NamedTuple):
    """A model in which every group has a device.

    Seconds become whole ticks, rounded down. A schedule of the simulator whose starts are rounded
    down too keeps all that the model asks for, since the sum of two floors is no more than the
    floor of the sum; so the least makespan, in seconds, is no more than any step time. A tick is
    a power of two, by which floats are divided without rounding.

    Attributes:
        model: to be extended.
        on: `on[group][device]`, the literal that says so.
        makespan: in ticks, to be minimised.
        horizon: the most that it can be.
        tick: seconds.
        seconds: (num_ops, num_devices) ticks that an op takes; 0 where it cannot run.
        held: (num_ops, num_devices) ticks that it holds the device for, launch overhead included.
    """

    model: cp_model.CpModel
    on: list[list[cp_model.IntVar]]
    makespan: cp_model.IntVar
    horizon: int
    tick: float
    seconds: Ints
    held: Ints


def assignment(problem: PlacementProblem, step_time: float, feasible: bool) -> Assignment:
    """A model with the assignment, the memory that groups cannot do without, and devices' work.

    Args:
        problem: what is placed.
        step_time: seconds of a placement, more than 0; sets the tick.
        feasible: whether that placement is. Slower ones are then left out.
    """
    tick = float(2.0 ** np.floor(np.log2(step_time / TICKS)))
    model = cp_model.CpModel()
    on = [
        [model.new_bool_var(f"{group} on {device}") for device in range(problem.num_devices)]
        for group in range(problem.num_groups)
    ]
    for literals, allowed in zip(on, problem.allowed.tolist(), strict=True):
        model.add_exactly_one(literals)
        for literal in (literals[device] for device, may in enumerate(allowed) if not may):
            model.add(literal == 0)
    horizon = int((step_time if feasible else _longest(problem)) / tick)
    makespan = model.new_int_var(0, horizon, "makespan")
    model.minimize(makespan)
    seconds = in_ticks(_finite(problem.op_seconds), tick)
    overhead = in_ticks(problem.arrays.launch_overhead, tick)
    held = seconds + np.where(problem.op_seconds > 0, overhead, 0)
    made = Assignment(model, on, makespan, horizon, tick, seconds, held)
    _break_symmetry(problem, made)
    _limit_memory(problem, made)
    _share_work(problem, made)
    return made


def in_ticks(seconds: Floats, tick: float) -> Ints:
    """Whole ticks, rounded down."""
    ticks: Ints = np.floor(seconds / tick).astype(np.int64)
    return ticks


def _finite(seconds: Floats) -> Floats:
    return np.where(np.isfinite(seconds), seconds, 0.0)


def _longest(problem: PlacementProblem) -> float:
    """Seconds that no schedule needs in which something is always going on."""
    p = problem.arrays
    total = float((_finite(p.op_seconds) + p.launch_overhead).max(axis=1).sum())
    if len(p.bandwidth):
        sent = p.tensor_bytes[:, None] / p.bandwidth + p.latency + p.overhead
        total += problem.num_devices * float(sent.max(axis=1).sum())
    return total


def _break_symmetry(problem: PlacementProblem, made: Assignment) -> None:
    """Of interchangeable devices, the lower-numbered have the lower-numbered first group."""
    classes = device_classes(problem)
    for device in range(problem.num_devices):
        alike = np.flatnonzero((classes == classes[device])[:device]).tolist()
        for group, literals in enumerate(made.on if alike else []):
            earlier = [made.on[other][alike[-1]] for other in range(group)]
            made.model.add_bool_or([*earlier, literals[device].negated()])


def _limit_memory(problem: PlacementProblem, made: Assignment) -> None:
    """Parameters, and what one group needs besides while an op runs, fit on each device."""
    parameters = group_parameters(problem)
    running = least_memory(problem) - parameters[:, None]
    for device, limit in enumerate(problem.memory_limit.tolist()):
        literals = [literals[device] for literals in made.on]
        total = cp_model.LinearExpr.weighted_sum(literals, parameters.tolist())
        for literal, size in zip(literals, running[:, device].tolist(), strict=True):
            if parameters.sum() + size > limit:
                made.model.add(total + size * literal <= limit)


def _share_work(problem: PlacementProblem, made: Assignment) -> None:
    """Each device has time for all its ops; only the last overhead lies beyond the makespan."""
    work: Ints = np.zeros(problem.allowed.shape, dtype=np.int64)
    np.add.at(work, problem.op_group, made.held)
    for device, overhead in enumerate(problem.arrays.launch_overhead.tolist()):
        literals = [literals[device] for literals in made.on]
        total = cp_model.LinearExpr.weighted_sum(literals, work[:, device].tolist())
        made.model.add(total <= made.makespan + int(np.ceil(overhead / made.tick)))
