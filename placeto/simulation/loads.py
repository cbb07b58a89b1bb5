"""How busy placements keep each device, channel and link, for each microbatch of a pipeline."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from placeto.problem import PlacementProblem
from placeto.simulation.alone import ends_seconds
from placeto.simulation.simulate import Outcomes, no_outcomes
from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.dags import compressed
from placeto.support.jit import inner, njit


class Loads(NamedTuple):
    """A problem as sums of what keeps its resources busy: devices, then channels, then links.

    A *flow* is all tensors of one group that the same other groups read. All is a microbatch's.
    """

    work: Floats  # (num_groups, num_devices) s, launch overheads included; infinite if it cannot be
    memory: Ints  # (num_groups,) bytes, see `resident_bytes`
    sender: Ints  # (num_flows,) group
    reader_start: Ints  # (num_flows + 1,) compressed rows of
    readers: Ints  # groups
    flow_start: Ints  # (num_groups + 1,) compressed rows of
    flows: Ints  # that each group sends or reads
    costs: Floats  # (num_flows, num_kinds of channels, 3) s that it keeps sender, channel, receiver
    bytes: Floats  # (num_flows,)
    kind: Ints  # (num_channels,)
    channel_between: Ints  # (num_devices, num_devices)
    multicast: Bools  # (num_channels,)
    path_start: Ints  # (num_channels + 1,) compressed rows of
    path: Ints  # links
    link_seconds: Floats  # (num_links,) s a byte


_LOADS: WeakKeyDictionary[PlacementProblem, Loads] = WeakKeyDictionary()


def loads_of(problem: PlacementProblem) -> Loads:
    """What the loads of a problem's placements are added up from; made when first asked for."""
    found = _LOADS.get(problem)
    if found is None:
        found = _LOADS[problem] = _loads_of(problem)
    return found


def resident_bytes(problem: PlacementProblem) -> Ints:
    """(num_groups,) bytes of parameters, and of the outputs of one microbatch, of each group."""
    graph, found = problem.graph, problem.group_parameters.copy()
    kept = graph.microbatch[graph.tensor_producer] <= 0  # those of all microbatches, and the first
    groups = problem.op_group[graph.tensor_producer[kept]]
    np.add.at(found, groups, graph.tensor_bytes[kept])
    return found


def _loads_of(problem: PlacementProblem) -> Loads:
    graph, arrays = problem.graph, problem.arrays
    share = 1 / graph.num_microbatches
    held = problem.op_seconds + np.where(problem.op_seconds > 0, arrays.launch_overhead, 0.0)
    work = [np.bincount(problem.op_group, share * column) for column in held.T]
    tensors, flow, ends = _flows(problem)
    size = graph.tensor_bytes[tensors]

    channels = problem.cluster.channels
    figures = [(c.bandwidth, c.overhead_seconds, bool(c.path), c.send, c.receive) for c in channels]
    kinds = list(dict.fromkeys(figures))
    costs = np.zeros((len(ends), len(kinds), 3))
    for kind, figure in enumerate(kinds):
        channel = np.full(len(size), figures.index(figure))
        carried = size / arrays.bandwidth[channel] + arrays.overhead[channel]
        if figure[2]:  # its links carry it
            carried[:] = 0
        send, receive = ends_seconds(arrays, channel, size)
        np.add.at(costs[:, kind], flow, share * np.stack([send, carried, receive], axis=1))
    total = np.zeros(len(ends))
    np.add.at(total, flow, share * size)

    sender = np.array([group for group, _ in ends], dtype=np.int64)
    pairs = [(number, reader) for number, (_, readers) in enumerate(ends) for reader in readers]
    row, reader = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    of_group = np.concatenate([sender, reader]), np.concatenate([np.arange(len(ends)), row])
    return Loads(
        np.stack(work, axis=1, dtype=np.float64),
        resident_bytes(problem),
        sender,
        *compressed(len(ends), row, reader),
        *compressed(problem.num_groups, *of_group),
        costs,
        total,
        np.array([kinds.index(figure) for figure in figures], dtype=np.int64),
        arrays.channel_between,
        arrays.multicast,
        arrays.path_start,
        arrays.path,
        1 / arrays.links[:, 0],
    )


def _flows(problem: PlacementProblem) -> tuple[Ints, Ints, list[tuple[int, tuple[int, ...]]]]:
    """(n,) tensors that other groups read, (n,) the flow of each, and each flow's ends.

    These are the group that sends and those that read.
    """
    graph, count = problem.graph, problem.num_groups
    producer = problem.op_group[graph.tensor_producer]
    reader = problem.op_group[graph.edge_consumer]
    outside = reader != producer[graph.edge_tensor]
    pairs = np.unique(graph.edge_tensor[outside] * count + reader[outside])
    tensors, first = np.unique(pairs // count, return_index=True)
    numbers: dict[tuple[int, tuple[int, ...]], int] = {}
    flow = np.empty(len(tensors), dtype=np.int64)
    rows = np.split(pairs % count, first[1:])
    for index, (tensor, readers) in enumerate(zip(tensors, rows, strict=False)):
        ends = int(producer[tensor]), tuple(readers.tolist())
        flow[index] = numbers.setdefault(ends, len(numbers))
    return tensors, flow, list(numbers)


def resource_loads(problem: PlacementProblem, many: ArrayLike) -> Floats:
    """How long each microbatch keeps each resource, of (batch, num_groups) placements.

    Of a step of several microbatches it is the mean over these of all that the step has.

    Returns:
        (batch, num_devices + num_channels + num_links) seconds: devices with their ops, launch
        overheads, and what sending and receiving cost them; channels with what they carry and rest,
        nothing for those with a path; links. Infinite where an op cannot run.

    Raises:
        PlacetoError: `many` has the wrong shape or names a device that is not there.
    """
    t, placements = loads_of(problem), problem.check_devices(many, many=True)
    found = np.zeros((len(placements), num_resources(t)))
    _add_up(t, placements, found)
    # Where one device has all groups, its ops are as fast as alone.
    lone = np.flatnonzero((placements == placements[:, :1]).all(axis=1))
    device = placements[lone, 0]
    seconds = problem.op_seconds.sum(axis=0) / problem.graph.num_microbatches
    saved = np.where(np.isfinite(seconds), 1 - problem.alone, 0) * np.nan_to_num(seconds, posinf=0)
    found[lone, device] -= saved[device]
    return found


def throughputs(problem: PlacementProblem, many: ArrayLike) -> Outcomes:
    """What (batch, num_groups) placements are in a pipeline that never drains.

    The seconds are those of the busiest resource; see `resource_loads`. Memory is `resident_bytes`.
    """
    loads = resource_loads(problem, many)
    devices = np.asarray(many)
    outcomes = no_outcomes(problem, len(devices), group_start=False)
    outcomes.step_time[:] = loads.max(axis=1)
    rows = np.arange(len(devices))[:, None]
    np.add.at(outcomes.peak_memory, (rows, devices), loads_of(problem).memory)
    fits = (outcomes.peak_memory <= problem.memory_limit).all(axis=1)
    outcomes.feasible[:] = np.isfinite(outcomes.step_time) & fits
    return outcomes


@njit(cache=True)
def num_resources(t: Loads) -> int:
    """Devices, channels and links."""
    return t.work.shape[1] + len(t.kind) + len(t.link_seconds)


@njit(cache=True)
def _add_up(t: Loads, many: Ints, found: Floats) -> None:
    seen = np.zeros(t.work.shape[1] + len(t.kind), np.bool_)
    for row in range(len(many)):
        add_up(t, many[row], seen, found[row])


@inner(cache=True)
def add_up(t: Loads, devices: Ints, seen: Bools, loads: Floats) -> None:
    """Adds all loads of a placement, in which groups may be unplaced: on device -1.

    `seen` is (num_devices + num_channels,) and false.
    """
    for group in range(len(devices)):
        if devices[group] >= 0:
            loads[devices[group]] += t.work[group, devices[group]]
    for flow in range(len(t.sender)):
        add_flow(t, devices, flow, 1.0, seen, loads)


@inner(cache=True)
def add_flow(t: Loads, devices: Ints, flow: int, times: float, seen: Bools, loads: Floats) -> None:
    """Adds what a flow keeps busy, so many times; `seen` as in `add_up`."""
    num_devices, num_channels = t.work.shape[1], len(t.kind)
    source = devices[t.sender[flow]]
    if source < 0:
        return
    first, last = t.reader_start[flow], t.reader_start[flow + 1]
    for position in range(first, last):
        target = devices[t.readers[position]]
        if target < 0 or target == source or seen[target]:
            continue
        seen[target] = True
        channel = t.channel_between[source, target]
        if t.multicast[channel]:
            if seen[num_devices + channel]:
                continue
            seen[num_devices + channel] = True
        kind = t.kind[channel]
        loads[source] += times * t.costs[flow, kind, 0]
        loads[num_devices + channel] += times * t.costs[flow, kind, 1]
        loads[target] += times * t.costs[flow, kind, 2]
        for hop in range(t.path_start[channel], t.path_start[channel + 1]):
            link = t.path[hop]
            loads[num_devices + num_channels + link] += times * t.bytes[flow] * t.link_seconds[link]
    for position in range(first, last):
        target = devices[t.readers[position]]
        if target >= 0 and target != source:
            seen[target] = seen[num_devices + t.channel_between[source, target]] = False
