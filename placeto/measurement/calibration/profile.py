"""Op times and overheads of a device kind, from traced steps and from steps in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeto.heuristics.initial import all_on
from placeto.measurement.calibration.busy import Work
from placeto.measurement.measured import Effort, Measurement
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.measurement.trace import Trace, read_trace
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress

_AT_ONCE = 2  # times as many steps tell how much slower they are beside others


@dataclass(frozen=True, eq=False)
class Profile:
    """A graph that ran as a whole on one device.

    Attributes:
        alone_seconds: median of the steps during which no other device computed.
        step_seconds: of one during which all others did, by the median ratio of the two.
        op_seconds: (num_steps, num_ops) of each traced step; see `op_seconds`.
        gap_seconds: median over the traced steps of the median between a kernel and the next.
    """

    alone_seconds: float
    step_seconds: float
    op_seconds: Floats
    gap_seconds: float

    def at(self, alone_seconds: float) -> "Profile":
        """What it would be while the device is as fast as a step alone of so many seconds tells."""
        factor = alone_seconds / self.alone_seconds
        return Profile(
            alone_seconds,
            factor * self.step_seconds,
            factor * self.op_seconds,
            factor * self.gap_seconds,
        )


def profiles(
    runtime: Runtime,
    problem: PlacementProblem,
    runnable: Runnable,
    effort: Effort,
    num_traces: int,
    progress: Progress,
) -> list[Profile]:
    """Runs a whole graph on each device, alone and while all others run it; traces steps of these.

    Cores share a memory, so that ops are slower beside a busy core, by a few percent or a third, as
    they compute or move bytes. Placements worth having keep all devices busy. Where all at once
    cannot be run, for want of memory, devices run it one after the other.

    What cannot run on a device (a GPU lacks some kernels) runs where it can; a group of the problem
    is what must share a device.

    Raises:
        PlacetoError: the graph cannot be run on some device.
    """
    graph, numbers = problem.graph, range(problem.num_devices)
    placed = [(problem, all_on(problem, number), runnable) for number in numbers]
    names = [device.name for device in problem.cluster.devices]
    if len(placed) > 1:
        progress(f"running {graph.name} on all devices, in turn and at once")
        together = replace(
            effort,
            steps=_AT_ONCE * effort.steps,
            max_steps=_AT_ONCE * effort.max_steps,
            deadline_seconds=2 * len(placed) * effort.deadline_seconds,
        )
        alone, beside = runtime.at_once(placed, together, num_traces)
        if beside[0].feasible:
            return [_profile(problem, *each) for each in zip(numbers, alone, beside, strict=True)]
        progress(f"{graph.name} does not run on all devices at once: {beside[0].reason}")
    found = []
    for number, name in enumerate(names):
        progress(f"running {graph.name} on {name}")
        [measured] = runtime.in_turn([placed[number]], effort, traces=num_traces)
        if not measured.feasible:
            raise PlacetoError(
                f"graph {graph.name!r} on {name!r}: cannot be run: {measured.reason}"
            )
        found.append(_profile(problem, number, measured, measured))
    return found


def _profile(
    problem: PlacementProblem, device: int, alone: Measurement, beside: Measurement
) -> Profile:
    name = str(problem.cluster.tensorflow_devices()[device])
    numbers = {op: number for number, op in enumerate(problem.graph.op_names)}
    traces = [read_trace(trace, [name]) for trace in beside.traces]
    slower = float(np.median(np.array(beside.samples) / np.array(alone.samples)))
    return Profile(
        alone.step_time,
        alone.step_time * slower,
        np.stack([op_seconds(trace, numbers) for trace in traces]),
        float(np.median([gap_seconds(trace) for trace in traces])),
    )


def op_seconds(trace: Trace, numbers: Mapping[str, int]) -> Floats:
    """(num_ops,) what the kernel of each op, by its number, took in a traced step on one device.

    That is the time from the kernel's begin to its end. What the executor does around it, to
    gather an op's inputs and to store its outputs, costs about the same for every op and is not
    all seen in a trace: it is part of the launch overhead, which is fitted to whole steps.

    Ops that do not show up cost nothing; so do those that the runtime replaces or adds (inputs,
    what carries tensors), as far as they go by other names. Of an op that runs several times in a
    step (in a loop) the sum counts.
    """
    seconds = np.zeros(len(numbers))
    for run in trace.ops:
        if run.op in numbers:
            seconds[numbers[run.op]] += run.seconds
    return seconds


def gap_seconds(trace: Trace) -> float:
    """Median seconds between a kernel's end and the next one's begin on one, busy device."""
    begins = np.array([run.begin for run in trace.ops])
    kernels = np.array([run.seconds for run in trace.ops])
    gaps = np.diff(begins) - kernels[:-1]
    return float(np.median(np.maximum(gaps, 0.0))) if len(gaps) else 0.0


def typical(profiles: Sequence[Profile]) -> Floats:
    """(num_ops,) median seconds over the traced steps of all profiles, all of one graph."""
    return np.asarray(np.median(np.concatenate([each.op_seconds for each in profiles]), axis=0))


def all_in_turn(
    runtime: Runtime,
    graphs: Sequence[tuple[PlacementProblem, Runnable]],
    work: Work,
    effort: Effort,
) -> tuple[Floats, Floats]:
    """Runs each graph as a whole on each device, and a piece of work there, all of it in turn.

    A machine is faster at one time than at another: what is measured at different times cannot be
    compared, and what ran in turn can.

    Returns:
        (num_graphs, num_devices) seconds of a step, medians, and (num_devices,) seconds of a
        product of the work.

    Raises:
        PlacetoError: they cannot run in turn.
    """
    numbers = range(runtime.cluster.num_devices)
    placed = [
        (problem, all_on(problem, number), runnable)
        for problem, runnable in graphs
        for number in numbers
    ]
    placed += map(work.placed, numbers)
    effort = replace(effort, deadline_seconds=len(placed) * effort.deadline_seconds)
    found = runtime.in_turn(placed, effort)
    if reason := found[0].reason:
        raise PlacetoError(f"they cannot be run in turn: {reason}")
    seconds = np.array([each.step_time for each in found]).reshape(-1, len(numbers))
    return seconds[:-1], seconds[-1] / work.num_products


@dataclass(frozen=True)
class StepOverheads:
    """What a step on one device takes besides its kernels.

    Attributes:
        op_overhead: seconds an op.
        step_overhead: seconds a step, to start it and to hear of its end.
    """

    op_overhead: float
    step_overhead: float


@dataclass(frozen=True, eq=False)
class KindRun:
    """A graph that ran as a whole on the devices of one kind, which are taken to be equal.

    Attributes:
        column: (num_ops,) median seconds of each op's kernel; infinite where it cannot run.
        alone_seconds: mean over the devices of the median step while no other device computed.
        step_seconds: likewise, while all others did.
        gap_seconds: median between a kernel and the next.
    """

    column: Floats
    alone_seconds: float
    step_seconds: float
    gap_seconds: float

    @property
    def is_whole(self) -> bool:
        """Whether all of its ops ran there."""
        return bool(np.isfinite(self.column).all())

    @property
    def kernel_seconds(self) -> float:
        """Sum of the kernels."""
        return float(self.column[np.isfinite(self.column)].sum())

    @property
    def num_ops(self) -> int:
        """Ops of non-zero time."""
        return int(np.count_nonzero(self.column))

    def stretch(self, launch: StepOverheads) -> float:
        """By how much kernels take longer within a step than their medians say, as a factor.

        Medians leave out what slows down now one op and now another, and a traced kernel is not
        quite as fast as one that is not. By this factor op times must be multiplied for the step to
        take as long as measured; it is 1 where the overheads alone are longer, and where a step was
        not on these devices alone.
        """
        left = self._left(self.step_seconds, launch)
        return left / self.kernel_seconds if left > 0 and self.kernel_seconds > 0 else 1.0

    def alone(self, launch: StepOverheads) -> float:
        """What ops take on a device while no other computes, over what they take beside others."""
        beside = self._left(self.step_seconds, launch)
        alone = self._left(self.alone_seconds, launch)
        return min(alone / beside, 1.0) if alone > 0 and beside > 0 else 1.0

    def _left(self, step_seconds: float, launch: StepOverheads) -> float:
        """Of a step, what is its ops'; 0 where not all of them ran on these devices."""
        overheads = launch.step_overhead + self.num_ops * launch.op_overhead
        return step_seconds - overheads if self.is_whole else 0.0


def run_of_kind(problem: PlacementProblem, profiles: Sequence[Profile], device: int) -> KindRun:
    """A graph on the devices of one kind, profiled on each; `device` is one of their numbers."""
    allowed = problem.allowed[:, device][problem.op_group]
    return KindRun(
        np.where(allowed, typical(profiles), np.inf),
        float(np.mean([each.alone_seconds for each in profiles])),
        float(np.mean([each.step_seconds for each in profiles])),
        float(np.median([each.gap_seconds for each in profiles])),
    )


def fit_overheads(runs: Sequence[KindRun], step_overhead: float) -> StepOverheads:
    """Least squares of step = kernels + ops * op_overhead + step_overhead, for one kind.

    Residuals are relative to the step, so that a graph of long steps does not count for more.
    Tracing lengthens the gap between one kernel and the next, so that no overhead is above it. What
    steps take longer than that is not the ops' number's doing.

    Args:
        runs: of each graph; those that are not whole count for the gap alone.
        step_overhead: seconds of a step of nothing.
    """
    whole = [each for each in runs if each.is_whole]
    step_seconds = np.array([each.step_seconds for each in whole])
    num_ops = np.array([each.num_ops for each in whole], dtype=np.int64)
    weight = num_ops / np.square(step_seconds)
    left = step_seconds - np.array([each.kernel_seconds for each in whole]) - step_overhead
    total = float(np.sum(weight * num_ops))
    fitted = float(np.sum(weight * left)) / total if total > 0 else 0.0
    gap_seconds = float(np.median([each.gap_seconds for each in runs]))
    return StepOverheads(min(max(fitted, 0.0), gap_seconds), step_overhead)
