"""One device, layers one after the other, a pipeline, data parallel: what each would do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import all_on
from placeto.placement.accelerators import accelerators
from placeto.placement.module_devices import modules_meta
from placeto.placement.pipeline_plan import stage_units
from placeto.placers.pipeline import best_stages, plan_pipeline
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.simulation.alone import seconds_alone
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import NotApplicable

Strategy = Literal["single", "naive", "pipeline", "data-parallel"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
# A split has so much of the time of one device at most: less is not worth two devices.
WORTH = 0.95
PARAMETER, UPDATES = "parameter", ("sgd", "momentum", "rmsprop", "adam")


@dataclass(frozen=True)
class Outlook:
    """What a strategy would do.

    Attributes:
        strategy: which one.
        devices: names of those that it uses.
        step_time: simulated seconds.
        peak_memory: simulated bytes of each of these devices.
        feasible: whether all of it fits.
        how: what there is to know of it, in a few words.
    """

    strategy: Strategy
    devices: tuple[str, ...]
    step_time: float
    peak_memory: tuple[int, ...]
    feasible: bool
    how: str = ""


def outlook(graph: ComputationGraph, cluster: Cluster, strategy: Strategy) -> Outlook:
    """Simulates a step of a PyTorch module by a strategy.

    `single`: all microbatches one after the other on the best device that they fit on. `naive`:
    layers on two devices or more, of which one computes at a time, as with a `device_map`; split
    where a simulation without that rule is fastest. `pipeline`: see `plan_pipeline`.
    `data-parallel`: the whole module on each of several devices, the fastest ones; each has a share
    of the microbatches (of a step of one, of its examples), then gradients are summed up by a ring
    (Patarasuk & Yuan 2009), which does not overlap with what comes before. Of a cluster with GPUs
    the CPU is left out, see `accelerators`.

    Raises:
        PlacetoError: the graph is of no PyTorch module, or has no costs for a device.
        NotApplicable: one device or one microbatch, where more are needed.
    """
    modules_meta(graph)
    used = accelerators(cluster)
    if strategy != "single" and used.num_devices == 1:
        beside = " beside the CPU" if cluster.num_devices > 1 else ""
        raise NotApplicable(f"cluster {cluster.name!r} has one device{beside}")
    if strategy in ("naive", "pipeline") and graph.num_microbatches == 1:
        raise NotApplicable("the step has one microbatch; extract it with ?microbatches=8")
    return _OUTLOOKS[strategy](graph, used)


def verdict(found: Sequence[Outlook]) -> str:
    """What to do, in a sentence, of strategies on the same graph and cluster."""
    fit = [each for each in found if each.feasible]
    if not fit:
        return "nothing fits: make the batch or the model smaller, or take more microbatches"
    best = min(fit, key=lambda each: each.step_time)
    single = next((each for each in fit if each.strategy == "single"), None)
    if single is None:
        alone = any(each.strategy == "single" for each in found)
        why = "it does not fit on one device, and " if alone else ""
        return f"{why}{best.strategy} is the fastest that fits"
    share = best.step_time / single.step_time
    if best is single:
        return f"do not split: nothing is faster than {single.devices[0]} alone"
    if share > WORTH:
        return f"do not split: {best.strategy} is {1 / share - 1:.0%} faster than one device"
    return f"split: {best.strategy} is {1 / share:.2f} times as fast as {single.devices[0]} alone"


def one_after_the_other(graph: ComputationGraph) -> ComputationGraph:
    """The graph in which no microbatch begins before the one before it is through."""
    consumed = np.zeros(graph.num_ops, dtype=bool)
    fed = np.zeros(graph.num_ops, dtype=bool)
    source, target = graph.op_edges
    inside = graph.microbatch[source] == graph.microbatch[target]
    consumed[source[inside]] = fed[target[inside]] = True
    producers: list[int] = []
    edges: list[tuple[int, int]] = []
    for number in range(1, graph.num_microbatches):
        ends = np.flatnonzero((graph.microbatch == number - 1) & ~consumed)
        begins = np.flatnonzero((graph.microbatch == number) & ~fed)
        for op in ends.tolist():
            edges += [(graph.num_tensors + len(producers), begin) for begin in begins.tolist()]
            producers.append(op)
    tensor, consumer = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return replace(
        graph,
        tensor_producer=np.concatenate([graph.tensor_producer, producers]).astype(np.int64),
        tensor_bytes=np.concatenate([graph.tensor_bytes, np.zeros(len(producers), np.int64)]),
        edge_tensor=np.concatenate([graph.edge_tensor, tensor]),
        edge_consumer=np.concatenate([graph.edge_consumer, consumer]),
    )


def ring_seconds(cluster: Cluster, devices: Sequence[int], num_bytes: int) -> float:
    """Seconds of an all-reduce by a ring, each step of it simulated on the cluster's channels.

    Of n devices each sends an n-th of the bytes to the next, 2 (n - 1) times; it has to have
    received one part before it sends the next.
    """
    count = len(devices)
    steps = 2 * (count - 1)
    ops = (steps + 1) * count
    number = np.arange(ops).reshape(steps + 1, count)
    tensor = number[:-1].ravel()  # each op but the last ones yields a part
    consumers = np.roll(number[1:], -1, axis=1).ravel()
    graph = ComputationGraph(
        name="ring",
        op_names=[f"part{each}" for each in range(ops)],
        op_types=["part"] * ops,
        op_seconds={kind: np.zeros(ops) for kind in cluster.kinds},
        tensor_producer=tensor,
        tensor_bytes=np.full(len(tensor), -(-num_bytes // count)),
        edge_tensor=np.arange(len(tensor)),
        edge_consumer=consumers,
    )
    problem = PlacementProblem(graph, cluster, "none")
    placed = np.tile(np.array(devices), steps + 1)[np.argsort(problem.op_group)]
    return float(simulate(problem, placed).step_time) if count > 1 else 0.0


def _single(graph: ComputationGraph, cluster: Cluster) -> Outlook:
    problem = _in_order(graph, cluster)
    found = []
    for device in range(problem.num_devices):
        schedule = simulate(problem, all_on(problem, device))
        name, peak = cluster.devices[device].name, int(schedule.peak_memory[device])
        found.append(Outlook("single", (name,), schedule.step_time, (peak,), schedule.feasible))
    return min(found, key=lambda each: (not each.feasible, each.step_time))


def _naive(graph: ComputationGraph, cluster: Cluster) -> Outlook:
    units = stage_units(graph)
    chained = one_after_the_other(graph)
    problem = PlacementProblem(chained, cluster, units.of_op, order="1f1b")
    devices, _, _ = best_stages(problem, least=2)
    return replace(_placed("naive", problem, devices), step_time=in_sequence(problem, devices))


def in_sequence(problem: PlacementProblem, devices: Ints) -> float:
    """Seconds of all ops and all transfers, one after the other, but for the updates.

    A simulation lets a layer's weights have their gradient while the layer before computes on
    another device. PyTorch gives a layer all of its gradients first.
    """
    graph, arrays = problem.graph, problem.arrays
    op_device = devices[problem.op_group]
    every = np.stack([_device_seconds(problem, each) for each in range(problem.num_devices)])
    every *= problem.alone[:, None]
    seconds = every[op_device, np.arange(graph.num_ops)]
    updates = np.array([kind in UPDATES for kind in graph.op_types])
    last = np.bincount(op_device[updates], weights=seconds[updates])
    source = op_device[graph.tensor_producer[graph.edge_tensor]]
    target = op_device[graph.edge_consumer]
    sent = (source != target) & (graph.tensor_bytes[graph.edge_tensor] > 0)
    # A tensor is sent to a device once.
    ways = np.stack([graph.edge_tensor[sent], source[sent], target[sent]], axis=1)
    tensor, source, target = np.unique(ways, axis=0).T
    sizes, number = graph.tensor_bytes[tensor], arrays.channel_between[source, target]
    transfers = seconds_alone(arrays, number, sizes)
    return float(seconds[~updates].sum() + last.max(initial=0.0) + transfers.sum())


def _pipeline(graph: ComputationGraph, cluster: Cluster) -> Outlook:
    plan, placement = plan_pipeline(graph, cluster)
    how = f"{plan.schedule}, split at {', '.join(plan.split_points)}"
    if not plan.split_points:
        how = "no split is worth its price"
    used = np.unique(placement.devices).tolist()
    names = tuple(cluster.devices[device].name for device in used)
    peaks = tuple(placement.peak_memory[used].tolist())
    return Outlook("pipeline", names, plan.step_time, peaks, plan.feasible, how)


def _data_parallel(graph: ComputationGraph, cluster: Cluster) -> Outlook:
    problem = _in_order(graph, cluster)
    parameters = np.array([kind == PARAMETER for kind in graph.op_types])
    updates = np.array([kind in UPDATES for kind in graph.op_types])
    gradients = int(graph.param_bytes[parameters].sum())
    units = graph.num_microbatches if graph.num_microbatches > 1 else graph.batch
    if units is None:
        raise NotApplicable("the graph does not say how many examples a step has")
    seconds = np.array([_device_seconds(problem, device) for device in range(cluster.num_devices)])
    each_unit = np.where(updates, 0.0, seconds).sum(axis=1) / units
    update = np.where(updates, seconds, 0.0).sum(axis=1)
    kept = int(graph.param_bytes.sum())
    found = []
    for count in range(2, min(cluster.num_devices, units) + 1):
        used = np.sort(np.argsort(each_unit, kind="stable")[:count])
        shares = divided(each_unit[used], units)
        peaks = []
        for device, share in zip(used.tolist(), shares.tolist(), strict=True):
            peak = int(simulate(problem, all_on(problem, device)).peak_memory[device])
            if graph.num_microbatches == 1:
                peak = kept + (peak - kept) * share // units
            peaks.append(peak + gradients)  # and what is sent of them
        fits = all(
            peak <= cluster.devices[device].memory_bytes
            for device, peak in zip(used.tolist(), peaks, strict=True)
        )
        reduce = ring_seconds(cluster, used.tolist(), gradients)
        step_time = float((shares * each_unit[used]).max() + reduce + update[used].max())
        names = tuple(cluster.devices[device].name for device in used.tolist())
        what = "microbatches" if graph.num_microbatches > 1 else "examples"
        how = f"{'/'.join(map(str, shares.tolist()))} {what}, ring {1e3 * reduce:.3g} ms"
        found.append(Outlook("data-parallel", names, step_time, tuple(peaks), fits, how))
    if not found:
        raise NotApplicable("the step has one example, which cannot be divided")
    return min(found, key=lambda each: (not each.feasible, each.step_time))


_OUTLOOKS: Mapping[Strategy, Callable[[ComputationGraph, Cluster], Outlook]] = {
    "single": _single,
    "naive": _naive,
    "pipeline": _pipeline,
    "data-parallel": _data_parallel,
}


def divided(unit_seconds: Floats, units: int) -> Ints:
    """(n,) how many of some equal units each of n devices has, so that the last is done soonest."""
    shares = np.zeros(len(unit_seconds), dtype=np.int64)
    for _ in range(units):
        shares[((shares + 1) * unit_seconds).argmin()] += 1
    return shares


def _device_seconds(problem: PlacementProblem, device: int) -> Floats:
    """(num_ops,) what each op takes of a device's time."""
    own = problem.cluster.devices[device]
    seconds = problem.graph.op_seconds[own.kind]
    return np.where(seconds > 0, seconds + own.launch_overhead_seconds, 0.0)


def _in_order(graph: ComputationGraph, cluster: Cluster) -> PlacementProblem:
    """Each microbatch forward and backward before the next, as one process does it."""
    order = "fifo" if graph.num_microbatches == 1 else "1f1b"
    return PlacementProblem(graph, cluster, "none", order=order)


def _placed(strategy: Strategy, problem: PlacementProblem, devices: Ints) -> Outlook:
    schedule = simulate(problem, devices)
    used = np.unique(devices).tolist()
    names = tuple(problem.cluster.devices[device].name for device in used)
    peaks = tuple(schedule.peak_memory[used].tolist())
    return Outlook(strategy, names, schedule.step_time, peaks, schedule.feasible)
