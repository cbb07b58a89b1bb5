"""Op times of a device kind, from traced steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeto.heuristics.initial import all_on
from placeto.measurement.trace import read_trace
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from placeto.measurement.effort import Effort
    from placeto.measurement.runnable import Runnable
    from placeto.measurement.runtime import Runtime
    from placeto.measurement.trace import Trace
    from placeto.problem import PlacementProblem
    from placeto.support.arrays import Floats


@dataclass(frozen=True, eq=False)
class Profile:
    """A graph that ran as a whole on one device, or on several one after the other.

    Attributes:
        step_seconds: median of the steps that were not traced.
        op_seconds: (num_steps, num_ops) of each traced step; see `op_seconds`.
        gap_seconds: median time between a kernel and the next in the traced steps.
    """

    step_seconds: float
    op_seconds: Floats
    gap_seconds: float


def profile(
    runtime: Runtime,
    problem: PlacementProblem,
    runnable: Runnable,
    device: int,
    effort: Effort,
    num_traces: int,
) -> Profile:
    """Runs a whole graph on one device.

    What cannot run there (a GPU lacks some kernels) runs where it can.

    Args:
        runtime: of the problem's cluster.
        problem: the graph; a group is what must share a device.
        runnable: the graph's GraphDef.
        device: its number.
        effort: of the steps that are not traced.
        num_traces: steps that are.

    Raises:
        PlacetoError: the graph cannot be run there.
    """
    where = f"graph {problem.graph.name!r} on {problem.cluster.devices[device].name!r}"
    measurement = runtime.measure(
        problem, all_on(problem, device), runnable, effort, traces=num_traces
    )
    if not measurement.feasible:
        raise PlacetoError(f"{where}: cannot be run: {measurement.reason}")
    name = str(problem.cluster.tensorflow_devices()[device])
    numbers = {op: number for number, op in enumerate(problem.graph.op_names)}
    traces = [read_trace(trace, [name]) for trace in measurement.traces]
    return Profile(
        measurement.step_time,
        np.stack([op_seconds(trace, numbers) for trace in traces]),
        float(np.median([gap_seconds(trace) for trace in traces])),
    )


def op_seconds(trace: Trace, numbers: Mapping[str, int]) -> Floats:
    """What the kernel of each op took in a traced step.

    That is the time from the kernel's begin to its end. What the executor does around it, to
    gather an op's inputs and to store its outputs, costs about the same for every op and is not
    all seen in a trace: it is part of the launch overhead, which is fitted to whole steps.

    Ops that do not show up cost nothing; so do those that the runtime replaces or adds (inputs,
    what carries tensors), as far as they go by other names. Of an op that runs several times in a
    step (in a loop) the sum counts.

    Args:
        trace: of one device.
        numbers: op -> its number.

    Returns:
        (num_ops,) seconds.
    """
    seconds = np.zeros(len(numbers))
    for run in trace.ops:
        if run.op in numbers:
            seconds[numbers[run.op]] += run.seconds
    return seconds


def gap_seconds(trace: Trace) -> float:
    """Median seconds between a kernel's end and the next one's begin.

    Args:
        trace: of one device, which is never idle.
    """
    begins = np.array([run.begin for run in trace.ops])
    kernels = np.array([run.seconds for run in trace.ops])
    gaps = np.diff(begins) - kernels[:-1]
    return float(np.median(np.maximum(gaps, 0.0))) if len(gaps) else 0.0


def typical(profiles: Sequence[Profile]) -> Floats:
    """(num_ops,) median seconds over the traced steps of all profiles, all of one graph."""
    return np.asarray(np.median(np.concatenate([each.op_seconds for each in profiles]), axis=0))
