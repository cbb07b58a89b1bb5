"""Placements to schedules and step times."""

from dataclasses import dataclass

import numpy as np
from numba import get_num_threads
from numpy.typing import ArrayLike

from placeto.problem import PlacementProblem
from placeto.simulation.compiled import Compiled, Reduction
from placeto.simulation.kernel import advance
from placeto.simulation.reduction import compiled
from placeto.simulation.run import Columns, read, run_many
from placeto.simulation.schedule import Schedule, Transfers
from placeto.simulation.state import (
    CHANNEL,
    COPY,
    COPY_ROW,
    NEXT_COPY,
    NUM_TRANSFERS,
    ON_DEVICE,
    OPS,
    TRANSFER_ROW,
    State,
    begin,
    borrowed,
    view,
)
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.errors import PlacetoError


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
    return schedule(problem, compiled(problem), problem.check_devices(devices))


def schedule(problem: PlacementProblem, reduction: Reduction, devices: Ints) -> Schedule:
    """The schedule of a placement, (num_groups,) devices, by a compiled form of the problem."""
    c = reduction.compiled
    with borrowed(reduction, 1) as states:
        s = view(c, *(part[0] for part in states))
        begin(c, devices, s)
        advance(c, s, 0, OPS)
        start = np.empty(problem.graph.num_ops)
        start[reduction.kept] = s.op_start
        start[reduction.constants] = s.source_start[reduction.constant_source]
        peak = np.empty(problem.num_devices, dtype=np.int64)
        step_time = read(s, peak, start[:0])
        transfers = _transfers(problem, c, s)
    seconds = problem.op_seconds[np.arange(len(start)), devices[problem.op_group]]
    fits = bool((peak <= problem.memory_limit).all())
    return Schedule(
        devices=devices,
        step_time=step_time,
        start=start,
        finish=start + seconds,
        peak_memory=peak,
        transfers=transfers,
        feasible=fits and bool(np.isfinite(step_time)),
    )


def _transfers(problem: PlacementProblem, c: Compiled, s: State) -> Transfers:
    count = s.counts[NUM_TRANSFERS]
    rows = s.transfers.reshape(-1, TRANSFER_ROW)[:count]
    copies = s.copies.reshape(-1, COPY_ROW)
    channel = rows[:, CHANNEL].astype(np.int64)
    tensor = s.transfer_keys[1 : 2 * count : 2].astype(np.int64)
    destinations = np.zeros((count, problem.num_devices), dtype=bool)
    copy = rows[:, COPY]
    while (some := np.flatnonzero(copy >= 0)).size:
        destinations[some, copies[copy[some], ON_DEVICE]] = True
        copy = np.where(copy >= 0, copies[copy, NEXT_COPY], -1)
    start = s.sent[:count].copy()
    sent = start + problem.graph.tensor_bytes[tensor] / c.bandwidth[channel]
    return Transfers(
        tensor=tensor,
        channel=channel,
        destinations=destinations,
        request=s.requested[:count].copy(),
        start=start,
        sent=sent,
        arrival=sent + c.latency[channel],
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

    def of(self, rows: Ints) -> "Outcomes":
        """Of some rows; a copy."""
        return Outcomes(
            step_time=self.step_time[rows],
            peak_memory=self.peak_memory[rows],
            group_start=self.group_start[rows],
            feasible=self.feasible[rows],
        )


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
    placements = np.ascontiguousarray(placements, dtype=np.int64)
    batch = len(placements)
    step_time = np.zeros(batch)
    peak = np.zeros((batch, problem.num_devices), dtype=np.int64)
    starts = np.zeros((batch, problem.num_groups if group_start else 0))
    reduction = compiled(problem)
    with borrowed(reduction, get_num_threads()) as states:
        columns = Columns(step_time, peak, starts)
        run_many(reduction.compiled, np.arange(batch), placements, states, columns)
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
