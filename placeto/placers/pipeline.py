"""Stages of a PyTorch module for a pipeline: the split that is fastest in the simulator."""

import time
from dataclasses import replace
from itertools import combinations

import numpy as np

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.heuristics.stages import Chain, device_orders
from placeto.objective import overflow, staged_worth
from placeto.placement import Placement
from placeto.placement.accelerators import accelerators
from placeto.placement.pipeline_plan import PipelinePlan, plan_of, stage_units
from placeto.placers.interleaved import best_interleaved
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.simulation import simulate_many
from placeto.simulation.stage_memory import stage_memory
from placeto.simulation.stages import PipelineSchedule, run_stages, stages_of
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable

# Of schedules that are as fast as each other the first one, which keeps less.
_PLAIN: tuple[PipelineSchedule, ...] = ("1f1b", "gpipe")
_TURNS = 0.1  # by how much stages that take turns must be faster: executed, they gain less


def plan_pipeline(
    graph: ComputationGraph,
    cluster: Cluster,
    schedule: PipelineSchedule | None = None,
    least: int = 1,
) -> tuple[PipelinePlan, Placement]:
    """Splits a pipelined step of a PyTorch module into stages, of a device one or several.

    The stages are contiguous along the forward pass, and begin with modules. Cuts that balance the
    work (by dynamic programming, see `heuristics.stages`), for each number of stages and each order
    of the devices, are moved, and devices exchanged, as long as the step becomes faster, pass by
    pass as PyTorch's schedule runs it (see `simulation.stages`), with the memory that PyTorch then
    holds (see `simulation.stage_memory`). What fits in memory goes before what does not. One stage
    is a plan, too: then no split is worth its price. Several stages a device are those of
    `placers.interleaved`.

    Args:
        graph: of `placeto extract` of a module, with more than one microbatch.
        cluster: the devices; beside GPUs the CPU is left out, see `accelerators`.
        schedule: `"gpipe"`, `"1f1b"` or `"interleaved"`; None for the fastest of those that fit in
            memory, the last one if it is faster by a tenth.
        least: how many stages there are at least; several stages a device are as many as they are.

    Returns:
        The plan, and the same as a placement, whose groups are the stretches between split points.
        The step time of both is the schedule's.

    Raises:
        PlacetoError: the graph is of no PyTorch module, has one microbatch, or no costs for a
            device of the cluster; fewer devices or stretches than stages; too few modules for
            several stages a device, or the microbatches make no equal rounds of them.
    """
    began = time.monotonic()
    units, cluster = stage_units(graph), accelerators(cluster)
    whole = PlacementProblem(graph, cluster, units.of_op)
    order, problem, devices, evaluations = _best(whole, schedule, least)
    peak = stage_memory(problem, devices, order)
    step = run_stages(stages_of(problem, devices), order)
    placement = Placement(
        problem,
        devices,
        step.seconds,
        peak,
        bool((peak <= problem.memory_limit).all() and np.isfinite(step.seconds)),
        method="pipeline",
        found_by="pipeline",
        evaluations=evaluations,
        wall_seconds=time.monotonic() - began,
    )
    single = place(problem, "single")
    alone = single.step_time if single.feasible else None
    return plan_of(placement, order, units, alone, step.bubble), placement


def _best(
    whole: PlacementProblem, schedule: PipelineSchedule | None, least: int
) -> tuple[PipelineSchedule, PlacementProblem, Ints, int]:
    """The best split by a schedule, or by any: that, its problem, devices and evaluations."""
    found: list[tuple[tuple[float, float], PipelineSchedule, PlacementProblem, Ints]] = []
    evaluations = 0
    for order in _PLAIN if schedule is None else (schedule,):
        if order != "interleaved":
            problem = replace(whole, order=order)
            devices, worth, tried = best_stages(problem, order, least)
            evaluations += tried
            found.append((worth, order, problem, devices))
    turned = best_interleaved(whole) if schedule in (None, "interleaved") else None
    if turned is not None:
        evaluations += turned.evaluations
        over, seconds = turned.worth
        worth = (over, seconds * (1 if schedule else 1 + _TURNS))
        found.append((worth, "interleaved", turned.problem, turned.devices))
    if not found:
        raise NotApplicable(
            f"graph {whole.graph.name!r}: no interleaved schedule has "
            f"{whole.graph.num_microbatches} microbatches in equal rounds, and two stages on each "
            f"of {whole.num_devices} devices of {whole.num_groups} stretches of modules, none of "
            "which sends past the next one"
        )
    _, order, problem, devices = min(found, key=lambda each: each[0])
    return order, problem, devices, evaluations


def best_stages(
    problem: PlacementProblem, schedule: PipelineSchedule | None = None, least: int = 1
) -> tuple[Ints, tuple[float, float], int]:
    """The best split of a row of groups into contiguous stages that is found.

    Args:
        problem: its groups are the row, such as `stage_units`.
        schedule: that the stages run; None if devices run ops by the problem's order alone.
        least: how many stages there are at least.

    Returns:
        (num_groups,) devices; bytes over their memory, and seconds; and how many placements were
        simulated.

    Raises:
        NotApplicable: there are fewer groups or devices than stages.
    """
    most = min(problem.num_devices, problem.num_groups)
    if most < least:
        raise NotApplicable(f"there cannot be {least} stages: {most} is the most")
    chain = Chain(problem, np.arange(problem.num_groups))
    orders = [order for count in range(least, most + 1) for order in device_orders(problem, count)]
    many = np.concatenate([chain.placed(chain.cuts(order)[1][None], order) for order in orders])
    best, lowest, evaluations = many[0], (np.inf, np.inf), 0
    while len(many):
        evaluations += len(many)
        if schedule is None:
            outcomes = simulate_many(problem, many)
            over = overflow(problem, outcomes.peak_memory).tolist()
            worth = list(zip(over, outcomes.step_time.tolist(), strict=True))
        else:
            worth = [staged_worth(problem, each, schedule) for each in many]
        if min(worth) >= lowest:
            break
        lowest = min(worth)
        best = many[worth.index(lowest)]
        near = _near(problem, best)
        stages = 1 + np.count_nonzero(np.diff(near, axis=1), axis=1)
        many = near[stages >= least]
    return best, lowest, evaluations


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
