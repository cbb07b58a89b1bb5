"""Placements to schedules and step times."""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import ArrayLike

from placeto.cluster import Channel, Cluster, Device
from placeto.graph import ComputationGraph
from placeto.problem import ClusterArrays, PlacementProblem
from placeto.simulation.alone import ends_seconds
from placeto.simulation.kernel import advance
from placeto.simulation.reduction import compiled
from placeto.simulation.schedule import Parts, Schedule, Transfers
from placeto.simulation.state import (
    GROUPS,
    OPS,
    STEP,
    Buffers,
    Compiled,
    Reduction,
    State,
    begin,
    borrowed,
    read,
    state_in,
    view,
)
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.jit import njit


def simulate(problem: PlacementProblem, devices: ArrayLike) -> Schedule:
    """Simulates one training step, op by op whatever the grouping.

    An op on a device that cannot run it never finishes: the step time is then infinite and the
    schedule not feasible.

    Args:
        problem: the graph, its grouping and the cluster.
        devices: (num_groups,) device of each group.

    Raises:
        PlacetoError: `devices` has the wrong shape or names a device that is not there.
    """
    return schedule(problem, compiled(problem), problem.check_devices(devices))


def schedule(problem: PlacementProblem, reduction: Reduction, devices: Ints) -> Schedule:
    """The schedule of a placement, (num_groups,) devices, by a compiled form of the problem."""
    c, outcomes = reduction.compiled, no_outcomes(problem, 1, group_start=False)
    with borrowed(reduction, 1) as states:
        run_many(c, np.zeros(1, dtype=np.int64), devices[None], states, outcomes, apart=True)
        s = state_in(c, states[0])
        start = np.empty(problem.graph.num_ops)
        start[reduction.kept] = s.op_start
        start[reduction.constants] = s.source_start[reduction.constant_source]
        finish = start + problem.seconds_of(devices)
        if len(s.op_finish):  # ops may have had to wait
            finish[reduction.kept] = s.op_finish
        transfers = _transfers(problem, c, s)
    step_time, peak = float(outcomes.step_time[0]), outcomes.peak_memory[0]
    feasible = bool((peak <= problem.memory_limit).all() and np.isfinite(step_time))
    return Schedule(devices, step_time, start, finish, peak, transfers, feasible)


def _transfers(problem: PlacementProblem, c: Compiled, s: State) -> Transfers:
    count = s.status["num_transfers"][0]
    made, waiting = s.transfers[:count], s.waiting[:count]
    channel, tensor = made["channel"].astype(np.int64), waiting["second"].astype(np.int64)
    destinations = np.zeros((count, problem.num_devices), dtype=bool)
    copy = made["copy"]
    while (some := np.flatnonzero(copy >= 0)).size:
        destinations[some, s.copies["device"][copy[some]]] = True
        copy = np.where(copy >= 0, s.copies["next"][copy], -1)
    size = problem.graph.tensor_bytes[tensor]
    if len(s.parts):
        chains = s.parts[:count]
        names = ("asked", "began", "sent", "done")
        request, start, sent, arrival = (chains[name].copy() for name in names)
        ends = made["sender"].astype(np.int64), destinations.argmax(axis=1)
        started = s.part_start.reshape(len(s.parts), -1)[:count]
        parts = _parts(problem.arrays, channel, size, ends, started)
    else:
        request, start = waiting["since"].copy(), made["sent"].copy()
        sent = start + size / c.bandwidth[channel]
        arrival = sent + c.latency[channel]
        parts = Parts(np.arange(count), np.full(count, -1), np.full(count, -1), start, sent)
    return Transfers(tensor, channel, destinations, request, start, sent, arrival, parts)


def _parts(
    arrays: ClusterArrays, channel: Ints, size: Ints, ends: tuple[Ints, Ints], started: Floats
) -> Parts:
    """The parts of transfers between (n,) `ends`; (n, longest) when they started, if they did."""
    hops = np.diff(arrays.path_start)[channel]
    count = np.maximum(hops, 1)
    send, receive = ends_seconds(arrays, channel, size)
    transfer, at = np.nonzero(np.arange(started.shape[1]) < (count + 2)[:, None])
    first, last = at == 0, at == count[transfer] + 1
    there = ~(first | last) | (first & (send > 0)[transfer]) | (last & (receive > 0)[transfer])
    transfer, at, first, last = transfer[there], at[there], first[there], last[there]
    device = np.select([first, last], [end[transfer] for end in ends], -1)
    on_path = ~(first | last) & (hops[transfer] > 0)
    link = np.full(len(transfer), -1)
    link[on_path] = arrays.path[arrays.path_start[channel[transfer[on_path]]] + at[on_path] - 1]
    bandwidth = arrays.bandwidth[channel[transfer]]
    bandwidth[on_path] = arrays.links[link[on_path], 0]
    seconds = np.select(
        [first, last], [send[transfer], receive[transfer]], size[transfer] / bandwidth
    )
    start = started[transfer, at]
    return Parts(transfer, device, link, start, start + seconds)


class Outcomes(NamedTuple):
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
        return Outcomes._make(column[rows] for column in self)


def no_outcomes(problem: PlacementProblem, batch: int, *, group_start: bool = True) -> Outcomes:
    """Outcomes of a batch, to be filled in."""
    return Outcomes(
        np.zeros(batch),
        np.zeros((batch, problem.num_devices), dtype=np.int64),
        np.zeros((batch, problem.num_groups if group_start else 0)),
        np.zeros(batch, dtype=bool),
    )


def simulate_many(
    problem: PlacementProblem, many: ArrayLike, *, group_start: bool = True
) -> Outcomes:
    """Simulates a batch of placements over all cores; the same numbers as one by one.

    Args:
        problem: the graph, its grouping and the cluster.
        many: (batch, num_groups) devices.
        group_start: whether the groups' start times are wanted; else their array is (batch, 0).

    Raises:
        PlacetoError: `many` has the wrong shape or names a device that is not there.
    """
    placements = problem.check_devices(many, many=True)
    outcomes = no_outcomes(problem, len(placements), group_start=group_start)
    reduction = compiled(problem)
    with borrowed(reduction, get_num_threads()) as states:
        run_many(reduction.compiled, np.arange(len(placements)), placements, states, outcomes)
    fits = (outcomes.peak_memory <= problem.memory_limit).all(axis=1)
    outcomes.feasible[:] = np.isfinite(outcomes.step_time) & fits
    return outcomes


def step_times(problem: PlacementProblem, many: ArrayLike) -> Floats:
    """Step times of (batch, num_groups) placements: (batch,) seconds, see `simulate_many`.

    Raises:
        PlacetoError: `many` has the wrong shape or names a device that is not there.
    """
    return simulate_many(problem, many, group_start=False).step_time


def compile_kernel() -> None:
    """Simulates a step of two ops, so that the kernel is compiled, or read from disk."""
    zero, one = np.array([0]), np.array([1])
    seconds = {"any": np.ones(2)}
    graph = ComputationGraph("first", ["a", "b"], ["Op"] * 2, seconds, zero, one, zero, one)
    devices = (Device("a", "any", 10), Device("b", "any", 10))
    channels = (Channel("there", ("a",), ("b",), 1.0), Channel("back", ("b",), ("a",), 1.0))
    problem = PlacementProblem(graph, Cluster("first", devices, channels), "none")
    simulate_many(problem, np.array([[0, 1]]))


def run_many(
    c: Compiled, rows: Ints, many: Ints, states: Buffers, outcomes: Outcomes, *, apart: bool = False
) -> None:
    """Simulates some rows of a batch of placements over all cores.

    One row starts no threads: numba's do not survive a fork, and a process that was forked from one
    which has used them may well have an environment of its own.

    Of (batch, num_groups) devices, the (n,) rows; the outcomes are filled in there, but for
    `feasible`. The states share the work; `apart`, each row has its own, which keeps the schedule.
    """
    record = OPS if apart else GROUPS if outcomes.group_start.shape[1] else STEP
    if len(rows) == 1:
        _run(c, rows, many, states, outcomes, 0, record)
    else:
        _run_over_cores(c, rows, many, states, outcomes, record)


@njit(cache=True, parallel=True)
def _run_over_cores(
    c: Compiled, rows: Ints, many: Ints, states: Buffers, found: Outcomes, record: int
) -> None:
    count = len(rows) if record == OPS else min(len(states), len(rows))
    for state in prange(count):
        mine = rows[state * len(rows) // count : (state + 1) * len(rows) // count]
        _run(c, mine, many, states, found, state, record)


@njit(cache=True)
def _run(
    c: Compiled, rows: Ints, many: Ints, states: Buffers, found: Outcomes, state: int, record: int
) -> None:
    """Simulates rows one after the other, with the buffers of one state; a row's own for `OPS`."""
    s = view(c, states[rows[0] if record == OPS else state])
    for row in rows:
        begin(c, many[row], s)
        advance(c, s, 0, record)
        found.step_time[row] = read(s, found.peak_memory[row], found.group_start[row])
