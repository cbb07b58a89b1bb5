"""A simulator's figures from real runs: a graph with op times, a cluster with channels."""

import datetime
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.heuristics.initial import single_devices
from placeto.measurement.calibration.busy import Work
from placeto.measurement.calibration.channels import EXCHANGES, fit_channels
from placeto.measurement.calibration.ends import Ends, measure_ends
from placeto.measurement.calibration.exchange import Exchange, Sample
from placeto.measurement.calibration.machine import machine
from placeto.measurement.calibration.profile import (
    KindRun,
    Profile,
    StepOverheads,
    all_in_turn,
    fit_overheads,
    profiles,
    run_of_kind,
)
from placeto.measurement.measured import Effort
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.support.arrays import Floats
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress

_SUFFIX = "-calibrated"
_SMALLEST = (1, 4)
_EXCHANGE_EFFORT = Effort(warm_up=5, steps=30)


class Check(TypedDict):
    """A graph on one device; times in seconds.

    `measured` is a step with all ops on the device while no other computes, and `beside` one while
    all others run theirs; `again` is one that ran in turn with those of all graphs, and `predicted`
    what is predicted for it, with the overhead of a step (None where it cannot run). `kernels` is
    what they take beside others, by the traces, and `stretch` the factor that their times were
    multiplied by.
    """

    graph: str
    device: str
    measured: float
    beside: float
    kernels: float
    stretch: float
    again: float
    predicted: float | None


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes:
        cluster: the cluster with measured figures; its devices' kinds have columns in `graphs`.
        graphs: as given, but with such columns, and without the tensors of inputs.
        launches: device kind -> its overheads.
        errors: (num_channels,) median relative difference between samples and fit of a channel;
            empty if channels were kept.
        checks: one a graph and device.
    """

    cluster: Cluster
    graphs: tuple[ComputationGraph, ...]
    launches: Mapping[str, StepOverheads]
    errors: tuple[float, ...]
    checks: tuple[Check, ...]


def calibrate(
    cluster: Cluster,
    graphs: Sequence[tuple[ComputationGraph, Runnable]],
    effort: Effort,
    num_traces: int,
    progress: Progress,
    *,
    keep_channels: bool = False,
) -> Calibration:
    """Runs each graph as a whole on each device, and transfers between the devices.

    Devices of one kind are taken to be equal: an op's time is the median over the traced steps on
    all of them, and placers may go on treating them alike. Give devices that differ different
    kinds. The columns of kind `cpu` of a cluster `local-2` are called `local-2-cpu`.

    Microbatches run one after the other, as they do in a pipeline: first come, first served, a
    device runs an op of all of them in a row, and finds its parameters in the cache.

    Op times are those beside other devices that run the same; how much faster ops are on a device
    that computes alone is said in the graph's meta, see `PlacementProblem.alone`.

    Then all graphs run on all devices in turn, and so does some work that never changes. That is
    how fast the machine is, for all figures: op times are stretched, so that a simulated step on
    one device takes as long as that one less the overhead of a step, which no simulation counts.
    Where they cannot (there may be no memory for all at once), each is as it was on its own.

    A channel has what transfers cost its ends, too, by size, if they cost anything; but for one
    that is multicast. It is measured beside the same work, and as fast as that then was.

    The runtime generates inputs where they are consumed, so that no input is ever transferred:
    their tensors are left out of the graphs.

    Args:
        cluster: whose devices can be run.
        graphs: with a GraphDef each.
        effort: of each graph on each device.
        num_traces: traced steps of each graph on each device.
        progress: called with what is being done.
        keep_channels: whether channels stay as the cluster has them, as one that was calibrated
            before; what costs most of the time is then only done for the graphs.

    Raises:
        PlacetoError: the cluster cannot be started, a channel has a path, or a graph or a transfer
            cannot be run.
    """
    problems = [
        PlacementProblem(
            _known_kinds(graph, cluster), cluster, "none",
            order="gpipe" if graph.num_microbatches > 1 else "fifo",
        )
        for graph, _ in graphs
    ]  # fmt: skip
    device_names = [device.name for device in cluster.devices]
    device_kinds = [device.kind for device in cluster.devices]
    with tempfile.TemporaryDirectory() as folder, Runtime(cluster) as runtime:
        profiled: list[list[Profile]] = [
            profiles(runtime, problem, runnable, effort, num_traces, progress)
            for problem, (_, runnable) in zip(problems, graphs, strict=True)
        ]
        progress("running all graphs on all devices in turn")
        runnables = [runnable for _, runnable in graphs]
        work = Work(cluster, Path(folder))
        try:
            again, product_seconds = all_in_turn(
                runtime, list(zip(problems, runnables, strict=True)), work, effort
            )
        except PlacetoError as error:
            progress(f"graphs count as they ran alone: {error}")
            again = np.array([[each.alone_seconds for each in row] for row in profiled])
            _, product_seconds = all_in_turn(runtime, [], work, effort)
        exchanges = {shape: Exchange(cluster, *shape, Path(folder)) for shape in EXCHANGES}
        idle_seconds = []
        for number, name in enumerate(device_names):
            progress(f"running a step of nothing on {name}")
            idle = exchanges[_SMALLEST].run(runtime, number, (number,), number, _EXCHANGE_EFFORT)
            idle_seconds.append(float(np.median(idle)))

        def sample(source: int, destination: int) -> list[Sample]:
            progress(f"sending from {device_names[source]} to {device_names[destination]}")
            return [
                exchange.sample(runtime, source, destination, _EXCHANGE_EFFORT)
                for exchange in exchanges.values()
            ]

        ends: dict[tuple[str, str], Ends | None] = {}  # by kinds, whose devices are equal

        def ends_of(source: int, destination: int) -> Ends | None:
            kinds = device_kinds[source], device_kinds[destination]
            if kinds not in ends:
                pair = device_names[source], device_names[destination]
                progress(f"computing on {pair[0]} and {pair[1]} while one sends to the other")
                both = float(product_seconds[source]), float(product_seconds[destination])
                ends[kinds] = measure_ends(runtime, source, destination, both, Path(folder))
            return ends[kinds]

        channels, errors = cluster.channels, tuple[float, ...]()
        if not keep_channels:
            channels, errors = fit_channels(cluster, sample, ends_of)
    prefix = cluster.name.removesuffix(_SUFFIX) + "-"
    kinds = {kind: prefix + kind.removeprefix(prefix) for kind in cluster.kinds}
    runs: dict[str, list[KindRun]] = {}
    launches: dict[str, StepOverheads] = {}
    for kind in cluster.kinds:
        members = [number for number, other in enumerate(device_kinds) if other == kind]
        runs[kind] = [
            run_of_kind(problem, [row[number].at(steps[number]) for number in members], members[0])
            for problem, row, steps in zip(problems, profiled, again.tolist(), strict=True)
        ]
        step_overhead = float(np.median([idle_seconds[number] for number in members]))
        launches[kind] = fit_overheads(runs[kind], step_overhead)
    devices = tuple(
        replace(
            each, kind=kinds[each.kind], launch_overhead_seconds=launches[each.kind].op_overhead
        )
        for each in cluster.devices
    )
    name, source = calibrated_name(cluster), _source(errors, launches)
    if keep_channels:
        source += f" Channels as before: {cluster.source}"
    found = replace(cluster, name=name, devices=devices, channels=channels, source=source)
    calibrated: list[ComputationGraph] = []
    checks: list[Check] = []
    for row, (graph, _) in enumerate(graphs):
        stretches = {kind: runs[kind][row].stretch(launches[kind]) for kind in runs}
        columns = {kinds[kind]: runs[kind][row].column * stretches[kind] for kind in runs}
        alone = {kinds[kind]: runs[kind][row].alone(launches[kind]) for kind in runs}
        calibrated.append(_calibrated(graph, columns, alone, num_traces))
        problem = PlacementProblem(calibrated[row], found, "none")
        for number, predicted in enumerate(step_times(problem, single_devices(problem)).tolist()):
            kind = device_kinds[number]
            checks.append(
                {
                    "graph": graph.name,
                    "device": device_names[number],
                    "measured": profiled[row][number].alone_seconds,
                    "beside": profiled[row][number].step_seconds,
                    "kernels": runs[kind][row].kernel_seconds,
                    "stretch": stretches[kind],
                    "again": float(again[row, number]),
                    "predicted": predicted + launches[kind].step_overhead
                    if math.isfinite(predicted)
                    else None,
                }
            )
    measured = {kinds[kind]: launch for kind, launch in launches.items()}
    return Calibration(found, tuple(calibrated), measured, errors, tuple(checks))


def calibrated_name(cluster: Cluster) -> str:
    """What the cluster is called once it is measured."""
    return cluster.name.removesuffix(_SUFFIX) + _SUFFIX


def without_inputs(graph: ComputationGraph) -> ComputationGraph:
    """The graph without the tensors that placeholders produce."""
    is_input = np.array([kind == "Placeholder" for kind in graph.op_types])
    kept = ~is_input[graph.tensor_producer]
    edges = kept[graph.edge_tensor]
    numbers = np.cumsum(kept) - 1
    return replace(
        graph,
        tensor_producer=graph.tensor_producer[kept],
        tensor_bytes=graph.tensor_bytes[kept],
        edge_tensor=numbers[graph.edge_tensor[edges]],
        edge_consumer=graph.edge_consumer[edges],
    )


def _known_kinds(graph: ComputationGraph, cluster: Cluster) -> ComputationGraph:
    """The graph with a column of every kind: a kind without one is taken to run every op."""
    unknown = {kind: np.zeros(graph.num_ops) for kind in cluster.kinds}
    return replace(graph, op_seconds=unknown | dict(graph.op_seconds))


def _calibrated(
    graph: ComputationGraph,
    columns: Mapping[str, Floats],
    alone: Mapping[str, float],
    num_traces: int,
) -> ComputationGraph:
    costs = dict(graph.meta.get("costs") or {})
    measured = {
        "source": f"{_measured_by()}; median of {num_traces} traced steps on each device of the "
        "kind, all ops on each device at once",
        "machine": machine(),
    }
    found = {kind: {**measured, "alone": factor} for kind, factor in alone.items()}
    costs["kinds"] = dict(costs.get("kinds") or {}) | found
    return replace(
        without_inputs(graph),
        op_seconds=dict(graph.op_seconds) | dict(columns),
        meta={**graph.meta, "costs": costs},
    )


def _source(errors: Sequence[float], launches: Mapping[str, StepOverheads]) -> str:
    here = machine()
    versions = ", ".join(f"{name} {text}" for name, text in here["versions"].items())
    what, fit = "launch overhead", ""
    if errors:
        what += ", bandwidth, latency, overhead and what the ends of transfers do"
        fit = f"; the channels' fit is {np.median(errors):.0%} off"
    steps = max(launch.step_overhead for launch in launches.values())
    return (
        f"{_measured_by()} on {here['processor']}, {here['cores']} cores ({versions}): "
        f"{what}{fit}. A step takes {steps:.2g} s besides, which no simulation counts. "
        "Memory is as the cluster was given."
    )


def _measured_by() -> str:
    return f"Measured on {datetime.date.today().isoformat()} by placeto calibrate"
