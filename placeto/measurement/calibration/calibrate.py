"""A simulator's figures from real runs: a graph with op times, a cluster with channels."""

from __future__ import annotations

import datetime
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from placeto.heuristics.initial import single_devices
from placeto.measurement.calibration.channels import (
    EXCHANGES,
    ChannelFit,
    Sample,
    fit_channels,
    sample_pair,
)
from placeto.measurement.calibration.confirm import confirm
from placeto.measurement.calibration.exchange import Exchange
from placeto.measurement.calibration.kinds import launch_of_kind, run_of_kind
from placeto.measurement.calibration.launch import StepOverheads
from placeto.measurement.calibration.machine import machine
from placeto.measurement.calibration.profile import Profile, profile
from placeto.measurement.effort import Effort
from placeto.measurement.runtime import Runtime
from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from placeto.cluster import Cluster
    from placeto.graph import ComputationGraph
    from placeto.measurement.runnable import Runnable
    from placeto.support.arrays import Floats

_SUFFIX = "-calibrated"
_SMALLEST = (1, 4)
_EXCHANGE_EFFORT = Effort(warm_up=5, steps=30)


class Check(TypedDict):
    """A graph on one device: see `Calibration.checks`."""

    graph: str
    device: str
    measured: float
    kernels: float
    stretch: float
    again: float
    predicted: float | None
    tries: int


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes:
        cluster: the cluster with measured figures; its devices' kinds have columns in `graphs`.
        graphs: as given, but with such columns, and without the tensors of inputs.
        launches: device kind -> its overheads.
        fits: one a channel.
        checks: a row a graph and device: `graph`, `device`, seconds of a step with all ops on the
            device (`measured`), of the kernels in it (`kernels`), and the factor that their times
            were multiplied by (`stretch`); seconds of a step that ran again when all was measured
            (`again`), what is predicted for it, with the overhead of a step (`predicted`, None
            where it cannot run), and how often the graph was measured until both agreed, or was
            given up (`tries`).
    """

    cluster: Cluster
    graphs: tuple[ComputationGraph, ...]
    launches: Mapping[str, StepOverheads]
    fits: tuple[ChannelFit, ...]
    checks: tuple[Check, ...]


def calibrate(
    cluster: Cluster,
    graphs: Sequence[tuple[ComputationGraph, Runnable]],
    effort: Effort,
    num_traces: int,
    progress: Progress,
) -> Calibration:
    """Runs each graph as a whole on each device, and transfers between the devices.

    Devices of one kind are taken to be equal: an op's time is the median over the traced steps on
    all of them, and placers may go on treating them alike. Give devices that differ different
    kinds. The columns of kind `cpu` of a cluster `local-2` are called `local-2-cpu`.

    In the end each graph runs on each device again. Where that is more than 3% off what was
    measured on the kind, the graph is measured again, three times at most.

    Op times are then stretched, so that a simulated step on one device takes as long as the
    measured one less the overhead of a step, which no simulation counts.

    The runtime generates inputs where they are consumed, so that no input is ever transferred:
    their tensors are left out of the graphs.

    Args:
        cluster: whose devices can be run.
        graphs: with a GraphDef each.
        effort: of each graph on each device.
        num_traces: traced steps of each graph on each device.
        progress: called with what is being done.

    Raises:
        PlacetoError: the cluster cannot be started, or a graph or a transfer cannot be run.
    """
    kinds = calibrated_kinds(cluster)
    problems = [
        PlacementProblem(_known_kinds(graph, cluster), cluster, "none") for graph, _ in graphs
    ]
    with tempfile.TemporaryDirectory() as folder, Runtime(cluster) as runtime:

        def profiled(row: int) -> list[Profile]:
            runnable = graphs[row][1]
            return _profiles(runtime, problems[row], runnable, effort, num_traces, progress)

        first = [profiled(row) for row in range(len(problems))]
        exchanges = [Exchange(cluster, *shape, Path(folder)) for shape in EXCHANGES]
        idle_seconds = _idle(runtime, exchanges[EXCHANGES.index(_SMALLEST)], progress)

        def sample(source: int, destination: int) -> list[Sample]:
            names = [cluster.devices[device].name for device in (source, destination)]
            progress(f"sending from {names[0]} to {names[1]}")
            return sample_pair(runtime, exchanges, EXCHANGES, source, destination, _EXCHANGE_EFFORT)

        channels, fits = fit_channels(cluster, sample)
        # Last, so that some time lies between.
        confirmed = [
            confirm(
                [device.kind for device in cluster.devices],
                first[row],
                partial(_again, runtime, problem, graphs[row][1], effort, progress),
                partial(profiled, row),
            )
            for row, problem in enumerate(problems)
        ]
    profiles = [each.profiles for each in confirmed]
    of_kind = {
        kind: [number for number, device in enumerate(cluster.devices) if device.kind == kind]
        for kind in cluster.kinds
    }
    runs = {
        kind: [
            run_of_kind(problem, [each[number] for number in members], members[0])
            for problem, each in zip(problems, profiles, strict=True)
        ]
        for kind, members in of_kind.items()
    }
    launches = {
        kind: launch_of_kind(runs[kind], [idle_seconds[number] for number in members])
        for kind, members in of_kind.items()
    }
    columns = {
        kind: [each.column * each.stretch(launches[kind]) for each in runs[kind]] for kind in runs
    }
    found = replace(
        cluster,
        name=calibrated_name(cluster),
        devices=tuple(
            replace(
                device,
                kind=kinds[device.kind],
                launch_overhead_seconds=launches[device.kind].op_overhead,
            )
            for device in cluster.devices
        ),
        channels=channels,
        source=_source(fits, launches),
    )
    calibrated = tuple(
        _calibrated(graph, {kinds[kind]: columns[kind][number] for kind in columns}, num_traces)
        for number, (graph, _) in enumerate(graphs)
    )
    predicted = [_predicted(graph, found) for graph in calibrated]
    return Calibration(
        cluster=found,
        graphs=calibrated,
        launches={kinds[kind]: launch for kind, launch in launches.items()},
        fits=fits,
        checks=tuple(
            {
                "graph": problem.graph.name,
                "device": device.name,
                "measured": profiles[row][number].step_seconds,
                "kernels": runs[device.kind][row].kernel_seconds,
                "stretch": runs[device.kind][row].stretch(launches[device.kind]),
                "again": confirmed[row].again[number],
                "predicted": predicted[row][number] + launches[device.kind].step_overhead
                if math.isfinite(predicted[row][number])
                else None,
                "tries": confirmed[row].tries,
            }
            for row, problem in enumerate(problems)
            for number, device in enumerate(cluster.devices)
        ),
    )


def calibrated_name(cluster: Cluster) -> str:
    """What the cluster is called once it is measured."""
    return cluster.name.removesuffix(_SUFFIX) + _SUFFIX


def calibrated_kinds(cluster: Cluster) -> dict[str, str]:
    """Device kind -> what the kind is called that was measured."""
    prefix = cluster.name.removesuffix(_SUFFIX) + "-"
    return {kind: prefix + kind.removeprefix(prefix) for kind in cluster.kinds}


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


def _profiles(
    runtime: Runtime,
    problem: PlacementProblem,
    runnable: Runnable,
    effort: Effort,
    num_traces: int,
    progress: Progress,
) -> list[Profile]:
    """One a device."""
    profiles = []
    for number, device in enumerate(problem.cluster.devices):
        progress(f"running {problem.graph.name} on {device.name}")
        profiles.append(profile(runtime, problem, runnable, number, effort, num_traces))
    return profiles


def _again(
    runtime: Runtime,
    problem: PlacementProblem,
    runnable: Runnable,
    effort: Effort,
    progress: Progress,
) -> list[float]:
    """Seconds of a step on each device."""
    seconds = []
    for number, device in enumerate(problem.cluster.devices):
        progress(f"running {problem.graph.name} on {device.name} again")
        seconds.append(profile(runtime, problem, runnable, number, effort, 1).step_seconds)
    return seconds


def _predicted(graph: ComputationGraph, cluster: Cluster) -> list[float]:
    """Simulated seconds of a step on each device; infinite where it cannot run."""
    problem = PlacementProblem(graph, cluster, "none")
    return [float(seconds) for seconds in step_times(problem, single_devices(problem))]


def _idle(runtime: Runtime, exchange: Exchange, progress: Progress) -> list[float]:
    """Seconds of a step of nothing on each device."""
    seconds = []
    for number, device in enumerate(runtime.cluster.devices):
        progress(f"running a step of nothing on {device.name}")
        measurement = exchange.run(runtime, number, number, number, _EXCHANGE_EFFORT)
        seconds.append(measurement.step_time)
    return seconds


def _known_kinds(graph: ComputationGraph, cluster: Cluster) -> ComputationGraph:
    """The graph with a column of every kind: a kind without one is taken to run every op."""
    unknown = {kind: np.zeros(graph.num_ops) for kind in cluster.kinds}
    return replace(graph, op_seconds=unknown | dict(graph.op_seconds))


def _calibrated(
    graph: ComputationGraph, columns: Mapping[str, Floats], num_traces: int
) -> ComputationGraph:
    costs = dict(graph.meta.get("costs") or {})
    measured = {
        "source": f"{_measured_by()}; median of {num_traces} traced steps on each device of the "
        "kind, all ops on one device",
        "machine": machine(),
    }
    costs["kinds"] = dict(costs.get("kinds") or {}) | dict.fromkeys(columns, measured)
    return replace(
        without_inputs(graph),
        op_seconds=dict(graph.op_seconds) | dict(columns),
        meta={**graph.meta, "costs": costs},
    )


def _source(fits: Sequence[ChannelFit], launches: Mapping[str, StepOverheads]) -> str:
    here = machine()
    versions = ", ".join(f"{name} {text}" for name, text in here["versions"].items())
    error = (
        f"; the channels' fit is {np.median([fit.error for fit in fits]):.0%} off" if fits else ""
    )
    steps = max(launch.step_overhead for launch in launches.values())
    return (
        f"{_measured_by()} on {here['processor']}, {here['cores']} cores ({versions}): launch "
        f"overhead, bandwidth, latency and overhead{error}. A step takes {steps:.2g} s "
        "besides, which no simulation counts. Memory is as the cluster was given."
    )


def _measured_by() -> str:
    return f"Measured on {datetime.date.today().isoformat()} by placeto calibrate"
