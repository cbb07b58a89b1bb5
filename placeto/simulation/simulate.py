"""Placements to schedules and step times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from placeto.errors import PlacetoError
from placeto.graph import Floats, Ints
from placeto.problem import PlacementProblem
from placeto.simulation.kernel import COPIES, TRANSFERS, run, run_batch, workspace
from placeto.simulation.schedule import Bools, Schedule, Transfers


def simulate(problem: PlacementProblem, devices: ArrayLike) -> Schedule:
    """Simulates one training step, op by op whatever the grouping (semantics version 1).

    Args:
        problem: the graph, its grouping and the cluster.
        devices: (num_groups,) device of each group.

    Returns:
        The schedule. An op on a device that cannot run it never finishes: the step time is then
        infinite and the schedule not feasible.

    Raises:
        PlacetoError: `devices` has the wrong shape or names a device that is not there.
    """
    placed = problem.check_devices(devices)
    w = workspace(problem.arrays)
    step_time = run(problem.arrays, placed, w)
    copies, count = w.counts[COPIES], w.counts[TRANSFERS]
    tensor, channel = w.transfer_tensor[:count].copy(), w.transfer_channel[:count].copy()
    destinations = np.zeros((count, problem.num_devices), dtype=bool)
    for transfer in range(count):
        copy = w.transfer_copy[transfer]
        while copy >= 0:
            destinations[transfer, w.copy_device[copy]] = True
            copy = w.copy_next[copy]
    assert destinations.sum() == copies
    start = w.transfer_start[:count].copy()
    sent = start + problem.graph.tensor_bytes[tensor] / problem.arrays.bandwidth[channel]
    transfers = Transfers(
        tensor=tensor,
        channel=channel,
        destinations=destinations,
        request=w.transfer_request[:count].copy(),
        start=start,
        sent=sent,
        arrival=sent + problem.arrays.latency[channel],
    )
    fits = bool((w.peak <= problem.memory_limit).all())
    return Schedule(
        devices=placed,
        step_time=step_time,
        start=w.start,
        finish=w.finish,
        peak_memory=w.peak,
        transfers=transfers,
        feasible=fits and bool(np.isfinite(step_time)),
    )


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What simulating a batch of placements says about each.

    Attributes:
        step_time: (batch,) seconds; infinite if an op cannot run where it is.
        peak_memory: (batch, num_devices) bytes.
        group_start: (batch, num_groups) seconds, first start of an op of each group.
        feasible: (batch,) whether the placement is.
    """

    step_time: Floats
    peak_memory: Ints
    group_start: Floats
    feasible: Bools


def simulate_many(
    problem: PlacementProblem, many: ArrayLike, *, group_start: bool = True
) -> Outcomes:
    """Simulates a batch of placements over all cores; the same numbers as one by one.

    Args:
        problem: the graph, its grouping and the cluster.
        many: (batch, num_groups) devices.
        group_start: whether the groups' start times are wanted; else their array is (batch, 0).

    Returns:
        Step times, peaks, start times and feasibility, in the order of `many`.

    Raises:
        PlacetoError: `many` has the wrong shape or names a device that is not there.
    """
    try:
        placements = np.asarray(many)
    except ValueError as error:
        raise PlacetoError("placements are not an array of device numbers") from error
    if placements.ndim != 2 or placements.shape[1] != problem.num_groups:
        raise PlacetoError(
            f"placements have shape {placements.shape}, expected (batch, {problem.num_groups})"
        )
    if not np.issubdtype(placements.dtype, np.integer):
        raise PlacetoError(f"placements have {placements.dtype} values, expected device numbers")
    if placements.size and not 0 <= placements.min() <= placements.max() < problem.num_devices:
        problem.check_devices(
            next(row for row in placements if row.min() < 0 or row.max() >= problem.num_devices)
        )
    batch = len(placements)
    step_time = np.zeros(batch)
    peak = np.zeros((batch, problem.num_devices), dtype=np.int64)
    starts = np.zeros((batch, problem.num_groups if group_start else 0))
    run_batch(problem.arrays, placements.astype(np.int64, order="C"), step_time, peak, starts)
    feasible = np.isfinite(step_time) & (peak <= problem.memory_limit).all(axis=1)
    return Outcomes(step_time, peak, starts, feasible)


def step_times(problem: PlacementProblem, many: ArrayLike) -> Floats:
    """Step times of a batch of placements.

    Args:
        problem: the graph, its grouping and the cluster.
        many: (batch, num_groups) devices.

    Returns:
        (batch,) seconds; infinite where an op cannot run where it is.

    Raises:
        PlacetoError: `many` has the wrong shape or names a device that is not there.
    """
    return simulate_many(problem, many, group_start=False).step_time
