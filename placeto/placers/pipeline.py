"""Stages of a PyTorch module for a pipeline: the split that is fastest in the simulator."""

import time
from dataclasses import replace
from itertools import combinations

import numpy as np

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import single_devices
from placeto.heuristics.stages import Chain, device_orders
from placeto.objective import overflow
from placeto.placement import Placement
from placeto.placement.pipeline_plan import PipelinePlan, PipelineSchedule, plan_of, stage_units
from placeto.problem import PlacementProblem
from placeto.simulation import simulate, simulate_many
from placeto.support.arrays import Ints

SCHEDULES: tuple[PipelineSchedule, ...] = ("gpipe", "1f1b")
_STARTS = 3  # balanced splits, the best by simulation, that are improved


def plan_pipeline(
    graph: ComputationGraph, cluster: Cluster, schedule: PipelineSchedule | None = None
) -> tuple[PipelinePlan, Placement]:
    """Splits a pipelined step of a PyTorch module into at most one stage a device.

    The stages are contiguous along the forward pass, and begin with modules. Cuts that balance the
    work (by dynamic programming, see `heuristics.stages`), for each number of stages and each order
    of the devices, are moved, and devices exchanged, as long as the simulated step becomes faster.
    What fits in memory goes before what does not. One stage is a plan, too: then no split is worth
    its price.

    Args:
        graph: of `placeto extract` of a module, with more than one microbatch.
        cluster: the devices.
        schedule: `"gpipe"` or `"1f1b"`; None for the faster one of those that fit in memory.

    Returns:
        The plan, and the same as a placement, whose groups are the stretches between split points.

    Raises:
        PlacetoError: the graph is of no PyTorch module, has one microbatch, or no costs for a
            device of the cluster.
    """
    began = time.monotonic()
    units = stage_units(graph)
    orders = SCHEDULES if schedule is None else (schedule,)
    whole = PlacementProblem(graph, cluster, units.of_op)
    found, evaluations = [], 0
    for order in orders:
        problem = replace(whole, order=order)
        devices, tried = _fastest(problem)
        evaluations += tried
        outcome = simulate(problem, devices)
        over = float(overflow(problem, outcome.peak_memory))
        found.append((over, outcome.step_time, order, problem, devices, outcome))
    *_, order, problem, devices, outcome = min(found, key=lambda each: each[:2])
    placement = Placement(
        problem,
        devices,
        outcome.step_time,
        outcome.peak_memory,
        outcome.feasible,
        method="pipeline",
        found_by="pipeline",
        evaluations=evaluations,
        wall_seconds=time.monotonic() - began,
    )
    return plan_of(placement, order, units, _single(problem)), placement


def _fastest(problem: PlacementProblem) -> tuple[Ints, int]:
    """(num_groups,) devices of the best split into stages that was found, and evaluations."""
    known: dict[bytes, tuple[float, float]] = {}

    def worth(many: Ints) -> list[tuple[float, float]]:
        """Of each bytes over the memory of all devices, and seconds; less is better."""
        fresh = [each for each in many if each.tobytes() not in known]
        if fresh:
            outcomes = simulate_many(problem, np.stack(fresh))
            over = overflow(problem, outcomes.peak_memory).tolist()
            pairs = zip(over, outcomes.step_time.tolist(), strict=True)
            known.update(zip((each.tobytes() for each in fresh), pairs, strict=True))
        return [known[each.tobytes()] for each in many]

    chain = Chain(problem, np.arange(problem.num_groups))
    orders = [
        order
        for count in range(1, min(problem.num_devices, problem.num_groups) + 1)
        for order in device_orders(problem, count)
    ]
    starts = np.concatenate([chain.placed(chain.cuts(order)[1][None], order) for order in orders])
    starts = np.unique(starts, axis=0)
    ranked = sorted(zip(worth(starts), range(len(starts)), strict=True))
    ends = []
    for least, number in ranked[:_STARTS]:
        best, near = starts[number], _near(problem, starts[number])
        while len(near) and min(found := worth(near)) < least:
            least = min(found)
            best = near[found.index(least)]
            near = _near(problem, best)
        ends.append((least, best))
    return min(ends, key=lambda end: end[0])[1], len(known)


def _near(problem: PlacementProblem, devices: Ints) -> Ints:
    """(n, num_groups) placements of which one or two stages are others.

    A cut is elsewhere, with the stages beside it exchanged or not; at either end of its range one
    is left out. A stage is parted with a device that has none. Two devices are exchanged.
    """
    count = problem.num_groups
    begins = np.flatnonzero(np.concatenate([[True], devices[1:] != devices[:-1]])).tolist()
    order, ends = devices[begins].tolist(), [*begins, count]
    free = sorted(set(range(problem.num_devices)) - set(order))
    pairs = [(ends[n - 1], ends[n + 1], order[n - 1], order[n]) for n in range(1, len(order))]
    pairs += [(ends[n], ends[n + 1], own, other) for n, own in enumerate(order) for other in free]
    many = []
    for low, high, one, other in pairs:
        for before, behind in ((one, other), (other, one)):
            for cut in range(low, high + 1):
                moved = devices.copy()
                moved[low:cut], moved[cut:high] = before, behind
                many.append(moved)
    for one, other in combinations(range(problem.num_devices), 2):
        swap = np.arange(problem.num_devices)
        swap[[one, other]] = other, one
        many.append(swap[devices])
    kept = [each for each in many if problem.allowed[np.arange(count), each].all()]
    return np.unique(np.array(kept, dtype=np.int64).reshape(-1, count), axis=0)


def _single(problem: PlacementProblem) -> float | None:
    """Seconds on the best device alone; None if the step fits on none."""
    outcomes = simulate_many(problem, single_devices(problem))
    return min(outcomes.step_time[outcomes.feasible].tolist(), default=None)
