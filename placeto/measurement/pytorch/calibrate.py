"""Measured costs for plans of PyTorch modules: op times of devices, channels between them."""

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeto.cluster import Channel, Cluster
from placeto.extraction.pytorch.capture import PARAMETER
from placeto.extraction.pytorch.source import Traced, graph_of
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import single_devices
from placeto.measurement.calibration.calibrate import calibrated_name
from placeto.measurement.calibration.channels import fit_channels
from placeto.measurement.calibration.ends import Ends
from placeto.measurement.calibration.exchange import Sample
from placeto.measurement.calibration.machine import machine
from placeto.measurement.pytorch.op_times import OpTimes, time_ops
from placeto.measurement.pytorch.transfers import Transfers, measure_transfers
from placeto.placement.module_devices import torch_devices
from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.support.arrays import Bools, Floats
from placeto.support.columns import LARGEST
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress


@dataclass(frozen=True)
class TorchCheck:
    """A step of all microbatches on one device.

    Attributes:
        graph: its name.
        microbatches: of it.
        kind: of the device, as calibrated.
        device: its name in the cluster.
        measured: seconds, as PyTorch ran it while no other process computed.
        predicted: seconds, as simulated with the costs found.
        alone: by what factor a microbatch is faster then than beside the cluster's other processes.
        not_measured: type of op -> how many the device has no kernel for.
    """

    graph: str
    microbatches: int
    kind: str
    device: str
    measured: float
    predicted: float
    alone: float
    not_measured: Mapping[str, int]


@dataclass(frozen=True)
class TorchCalibration:
    """What was measured.

    Attributes:
        cluster: with measured channels, and kinds that have columns in the graph.
        graphs: one a module, with a column of each measured kind.
        errors: (num_channels,) median relative difference between samples and fit of a channel;
            empty if channels were kept.
        checks: one a graph and measured kind.
    """

    cluster: Cluster
    graphs: tuple[ComputationGraph, ...]
    errors: tuple[float, ...]
    checks: tuple[TorchCheck, ...]


def calibrate_torch(
    traced: Sequence[Traced],
    cluster: Cluster,
    progress: Progress,
    device: str | None = None,
    threads: int = 1,
    *,
    keep_channels: bool = False,
) -> TorchCalibration:
    """Times the ops of modules' steps on a device of each kind, and transfers between devices.

    Devices of one kind are taken to be equal: the first of them is measured, of several processes
    on the CPU while the others compute, too. A disk stays as it is. Kinds are called as the cluster
    and they themselves are, `my-box-cpu`. A measured GPU has no more memory than is free once its
    libraries have what they keep for themselves.

    Args:
        traced: the steps; they run in turn, so that they can be compared.
        cluster: whose devices PyTorch has names for.
        progress: called with what is being done.
        device: measure ops on this one alone, as the cluster or PyTorch calls it; of other kinds op
            times stay what they are.
        threads: of a CPU process; `torchrun` gives each one.
        keep_channels: whether channels stay as the cluster has them.

    Raises:
        PlacetoError: a device without a name in PyTorch, or that is not there; no such device; a
            channel with a path; the user's code raises something.
    """
    if away := {name for name, torch in torch_devices(cluster).items() if torch == "disk"}:
        # Nothing is computed on a disk, and `detect` has read it.
        kept = [each for each in cluster.channels if away & {*each.sources, *each.destinations}]
        computing = replace(
            cluster,
            devices=tuple(each for each in cluster.devices if each.name not in away),
            channels=tuple(each for each in cluster.channels if each not in kept),
        )
        found = calibrate_torch(
            traced, computing, progress, device, threads, keep_channels=keep_channels
        )
        disks = [each for each in cluster.devices if each.name in away]
        whole = replace(
            found.cluster,
            devices=(*found.cluster.devices, *disks),
            channels=(*found.cluster.channels, *kept),
        )
        return replace(found, cluster=whole)
    names = torch_names(cluster)
    wanted = _wanted(cluster, names, device)
    prefix = cluster.name.removesuffix("-calibrated") + "-"
    channels, errors = cluster.channels, tuple[float, ...]()
    if not keep_channels and channels:
        channels, errors = _measured_channels(cluster, names, progress)
    times: dict[str, list[OpTimes]] = {}
    for kind, number in wanted.items():
        which = ", ".join(dict.fromkeys(each.source.target for each in traced))
        progress(f"running {which} op by op on {names[number]}")
        # Processes that share the CPU all compute in a pipeline.
        others = names.count("cpu") - 1 if names[number] == "cpu" else 0
        times[kind] = time_ops(traced, names[number], threads, others)
    kinds = {kind: prefix + kind.removeprefix(prefix) for kind in times}
    devices = tuple(
        replace(
            each,
            kind=kinds[each.kind],
            launch_overhead_seconds=float(np.mean([one.op_overhead for one in times[each.kind]])),
            memory_bytes=min(each.memory_bytes, free_bytes(names[wanted[each.kind]])),
        )
        if each.kind in kinds
        else each
        for each in cluster.devices
    )
    name = calibrated_name(cluster)
    source = _source(cluster, errors, threads)
    calibrated = replace(cluster, name=name, devices=devices, channels=channels, source=source)
    graphs, checks = [], []
    for place, each in enumerate(traced):
        own = {kinds[kind]: found[place] for kind, found in times.items()}
        graph = _measured_graph(each, own)
        graphs.append(graph)
        problem = PlacementProblem(graph, calibrated, "none")
        predicted = step_times(problem, single_devices(problem))
        checks += [
            TorchCheck(
                graph.name,
                graph.num_microbatches,
                kinds[kind],
                cluster.devices[number].name,
                own[kinds[kind]].step_seconds,
                float(predicted[number]),
                own[kinds[kind]].alone,
                _count_types(each, ~own[kinds[kind]].measured),
            )
            for kind, number in wanted.items()
        ]
    return TorchCalibration(calibrated, tuple(graphs), errors, tuple(checks))


def _measured_channels(
    cluster: Cluster, names: Sequence[str], progress: Progress
) -> tuple[tuple[Channel, ...], tuple[float, ...]]:
    """The channels with measured figures, and how far off each fit is; see `fit_channels`."""
    found: dict[tuple[int, int], Transfers] = {}

    def transfers(source: int, destination: int) -> Transfers:
        if (pair := (source, destination)) not in found:
            progress(f"sending from {names[source]} to {names[destination]}")
            found[pair] = measure_transfers(names[source], names[destination])
        return found[pair]

    def sample(source: int, destination: int) -> tuple[Sample, ...]:
        return transfers(source, destination).samples

    def ends_of(source: int, destination: int) -> Ends | None:
        return transfers(source, destination).ends

    return fit_channels(cluster, sample, ends_of)


def torch_names(cluster: Cluster) -> list[str]:
    """(num_devices,) what PyTorch calls each device.

    Raises:
        PlacetoError: it has no name for one.
    """
    known = torch_devices(cluster)
    for device in cluster.devices:
        if device.name not in known:
            raise PlacetoError(
                f"cluster {cluster.name!r}: device {device.name!r} has no name in PyTorch; give it "
                "a `torch` name, such as cuda:0 or cpu"
            )
    return [
        f"cuda:{name}" if isinstance(name := known[device.name], int) else name
        for device in cluster.devices
    ]


def free_bytes(device: str) -> int:
    """Bytes that tensors may take on a GPU; of the CPU any number."""
    import torch

    if torch.device(device).type == "cpu":
        return LARGEST
    square = torch.ones(64, 64, device=device)
    torch.nn.functional.linear(square @ square, square, square[0])  # cuBLAS makes its workspaces
    torch.cuda.synchronize(device)
    del square
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(device)
    return int(free)


def _wanted(cluster: Cluster, names: list[str], device: str | None) -> dict[str, int]:
    """Kind -> number of the device that is measured for it."""
    import torch

    first: dict[str, int] = {}
    for number, each in enumerate(cluster.devices):
        if device in (None, each.name, names[number]):
            first.setdefault(each.kind, number)
    if not first:
        known = ", ".join(dict.fromkeys(names))
        raise PlacetoError(
            f"cluster {cluster.name!r}: there is no device {device!r}; devices: {known}"
        )
    for number in first.values():
        try:
            torch.zeros(1, device=names[number])
        except (RuntimeError, AssertionError) as error:
            line = str(error).strip().splitlines()[0]
            raise PlacetoError(
                f"cluster {cluster.name!r}: device {names[number]} is not here: {line}"
            ) from error
    return first


def _count_types(traced: Traced, some: Bools) -> dict[str, int]:
    """Type of op -> how many of some (num_ops,) are of it."""
    return dict(Counter(op.type for op, one in zip(traced.listed.ops, some, strict=True) if one))


def _column(traced: Traced, origin: list[int], times: OpTimes) -> Floats:
    """(num_ops,) seconds of each op of the whole step."""
    ops = traced.listed.ops
    column = times.seconds[origin]
    if traced.call.microbatches > 1:
        # What adds up gradients is, in the graph, made of a parameter.
        seen: set[int] = set()
        for op, number in enumerate(origin):
            if ops[number].phase == PARAMETER and number in seen:
                column[op] = times.adding[number]
            seen.add(number)
    return column


def _measured_graph(traced: Traced, times: Mapping[str, OpTimes]) -> ComputationGraph:
    """The graph of a step, with a column of each kind that was measured."""
    graph, origin = graph_of(traced)
    costs = dict(graph.meta["costs"])
    measured: dict[str, Any] = {
        "source": f"{_measured_by()}; medians of ops that ran one after the other, as fast in the "
        "sum as PyTorch's own step",
        "machine": machine(),
    }
    each = {kind: measured | {"alone": found.alone} for kind, found in times.items()}
    columns = {kind: _column(traced, origin, found) for kind, found in times.items()}
    costs["kinds"] = dict(costs["kinds"]) | each
    return replace(
        graph,
        op_seconds=dict(graph.op_seconds) | columns,
        meta={**graph.meta, "costs": costs},
    )


def _source(cluster: Cluster, errors: tuple[float, ...], threads: int) -> str:
    here = machine()
    fit = f"; channels are {np.median(errors):.0%} off their fit" if errors else ""
    before = "" if errors or not cluster.channels else f" Channels as before: {cluster.source}"
    return (
        f"{_measured_by()} on {here['processor']}, {here['cores']} cores, {threads} "
        f"thread{'s' * (threads > 1)} a process{fit}. Memory is as the cluster was given.{before}"
    )


def _measured_by() -> str:
    return f"Measured on {datetime.date.today().isoformat()} by placeto calibrate --torch"
