"""The CPU and the disk as Accelerate's `dispatch_model` uses them: they hold weights, and no more.

What a device map puts there is computed on the main device: the first GPU, the CPU where there is
none. Its weights are brought there each time, and are not kept (Accelerate, `AlignDevicesHook`).
"""

from dataclasses import replace
from itertools import permutations

import numpy as np

from placeto.cluster import Channel, Cluster
from placeto.graph import BACKWARD, ComputationGraph
from placeto.placement.accelerators import channels_among
from placeto.placement.module_devices import STORES, modules_meta, torch_devices
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError

_AT_ONCE = 1e15  # bytes a second between a store and the main device: what is computed is there


def main_device(cluster: Cluster) -> int:
    """The number of the device that computes what is on the CPU or the disk.

    Raises:
        PlacetoError: no device of the cluster computes.
    """
    names = torch_devices(cluster)
    of_torch = [names.get(device.name) for device in cluster.devices]
    for number, name in enumerate(of_torch):
        if name not in STORES:
            return number
    if "cpu" not in of_torch:
        raise PlacetoError(f"cluster {cluster.name!r}: the disk is its only device")
    return of_torch.index("cpu")


def stores(cluster: Cluster) -> tuple[int, ...]:
    """The numbers of devices that hold weights and do not compute, in a device map."""
    names, main = torch_devices(cluster), main_device(cluster)
    return tuple(
        number
        for number, device in enumerate(cluster.devices)
        if names.get(device.name) in STORES and number != main
    )


def with_stores(
    graph: ComputationGraph, cluster: Cluster, twice: float | None
) -> tuple[ComputationGraph, Cluster]:
    """A graph and a cluster in which the CPU and the disk are what they are in a device map.

    An op on a store takes as long as on the main device; the first op of a module that reads a
    parameter takes the time of bringing it there, too. Tensors between a store and the main device
    take none. (Loads do not wait for what the main device does meanwhile.)

    Args:
        graph: inference of a PyTorch module; no op of a training step can be on a store.
        cluster: with devices that PyTorch calls `cpu` or `disk`.
        twice: None where nothing may be on a store. Else the main device has less memory by the
            parameters of the largest module, which may be brought to it, and by this share of all
            that a step on the main device alone makes. If it is 1, what is feasible fits on the
            main device, too (`main_memory`); with less more may stay there.

    Returns:
        Both as they are, where the cluster has no store.

    Raises:
        PlacetoError: the graph is of no PyTorch module, or has no costs for the main device.
    """
    holding, main = stores(cluster), main_device(cluster)
    if not holding:
        return graph, cluster
    computing = cluster.devices[main]
    devices, columns = list(cluster.devices), dict(graph.op_seconds)
    alone = PlacementProblem(graph, Cluster(computing.name, (computing,)), "none")
    for store in holding:
        kind = f"{cluster.devices[store].name} of {computing.name}"
        overhead = computing.launch_overhead_seconds
        devices[store] = replace(devices[store], kind=kind, launch_overhead_seconds=overhead)
        columns[kind] = np.full(graph.num_ops, np.inf)
        if twice is not None and not (graph.phase == BACKWARD).any():
            way = cluster.channels[cluster.channel_between[store, main]]
            columns[kind] = columns[computing.kind] + _load_seconds(graph, way)
    if twice is not None:
        peak = int(simulate(alone, np.zeros(alone.num_groups, np.int64)).peak_memory[0])
        made = peak - int(graph.param_bytes.sum())
        kept = (
            computing.memory_bytes - int(twice * made) - _largest_module(graph, graph.param_bytes)
        )
        devices[main] = replace(computing, memory_bytes=max(kept, 0))
    graph = replace(graph, op_seconds=columns)
    channels = _channels(cluster, main, holding)
    return graph, replace(cluster, devices=tuple(devices), channels=channels)


def main_memory(problem: PlacementProblem, devices: Ints) -> int:
    """Peak bytes on the main device, with all that is computed there of what is stored.

    Args:
        problem: of what `with_stores` returns.
        devices: (num_groups,) device of each group.
    """
    graph, main = problem.graph, main_device(problem.cluster)
    holding = np.isin(devices, stores(problem.cluster))
    stored = np.where(holding[problem.op_group], graph.param_bytes, 0)
    there = simulate(problem, np.where(holding, main, devices)).peak_memory[main]
    return int(there - stored.sum()) + _largest_module(graph, stored)


def _load_seconds(graph: ComputationGraph, way: Channel) -> Floats:
    """(num_ops,) how long ops wait for parameters: the first op of each module that reads one."""
    modules = modules_meta(graph)["modules"]
    seconds = np.zeros(graph.num_ops)
    loaded: set[tuple[int, str | None]] = set()
    source, target = graph.op_edges
    of_parameters = np.array([each == "parameter" for each in graph.op_types])[source]
    for edge in np.lexsort((target, source)).tolist():
        read = int(source[edge]), modules[target[edge]]
        if of_parameters[edge] and read not in loaded:
            loaded.add(read)
            size = int(graph.param_bytes[source[edge]])
            seconds[target[edge]] += (
                way.latency_seconds + way.overhead_seconds + size / way.bandwidth
            )
    return seconds


def _largest_module(graph: ComputationGraph, num_bytes: Ints) -> int:
    """Of (num_ops,) bytes, those of the module that has the most of its own."""
    sizes: dict[str | None, int] = {}
    for path, size in zip(modules_meta(graph)["modules"], num_bytes.tolist(), strict=True):
        sizes[path] = sizes.get(path, 0) + size
    return max(sizes.values())


def _channels(cluster: Cluster, main: int, holding: tuple[int, ...]) -> tuple[Channel, ...]:
    """Channels with stores where the main device is."""
    names = [device.name for device in cluster.devices]
    away = {names[store] for store in holding}
    found = [*channels_among(cluster.channels, set(names) - away)]
    here = (names[main], *sorted(away, key=names.index))
    found += [
        Channel(f"{source} on {destination}", (source,), (destination,), _AT_ONCE)
        for source, destination in permutations(here, 2)
    ]
    for store in holding:
        for other, name in enumerate(names):
            if name in here:
                continue
            for source, destination, like in (
                (names[store], name, cluster.channel_between[main, other]),
                (name, names[store], cluster.channel_between[other, main]),
            ):
                found.append(
                    replace(
                        cluster.channels[like],
                        name=f"{source} to {destination}, by {names[main]}",
                        sources=(source,),
                        destinations=(destination,),
                    )
                )
    return tuple(found)
