"""Op times and overheads of a device kind, from traced steps that a second run agrees with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placeto.heuristics.initial import all_on
from placeto.measurement.measured import Effort
from placeto.measurement.pace import CALM
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.measurement.trace import Trace, read_trace
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats
from placeto.support.errors import PlacetoError

WITHIN = 0.05  # two runs on calm cores differ by as much
TRIES = 3  # by default


@dataclass(frozen=True, eq=False)
class Profile:
    """A graph that ran as a whole on one device, once or several times.

    Attributes:
        steps: of each time, the median seconds of the steps that were not traced.
        op_seconds: (num_steps, num_ops) of each traced step; see `op_seconds`.
        gaps: of each traced step, the median seconds between a kernel and the next.
        pace: of the cores; see `Measurement`.
    """

    steps: tuple[float, ...]
    op_seconds: Floats
    gaps: tuple[float, ...]
    pace: float

    @property
    def step_seconds(self) -> float:
        """Median over the times."""
        return float(np.median(self.steps))

    @property
    def gap_seconds(self) -> float:
        """Median over the traced steps."""
        return float(np.median(self.gaps))

    def joined(self, other: "Profile") -> "Profile":
        """Both; if cores were slowed down during one of them alone, the other."""
        if (self.pace <= CALM) != (other.pace <= CALM):
            return min(self, other, key=lambda each: each.pace)
        return Profile(
            self.steps + other.steps,
            np.concatenate([self.op_seconds, other.op_seconds]),
            self.gaps + other.gaps,
            max(self.pace, other.pace),
        )


def profile(
    runtime: Runtime,
    problem: PlacementProblem,
    runnable: Runnable,
    device: int,
    effort: Effort,
    num_traces: int,
) -> Profile:
    """Runs a whole graph on one device, and traces some steps more.

    What cannot run there (a GPU lacks some kernels) runs where it can; a group of the problem is
    what must share a device.

    Raises:
        PlacetoError: the graph cannot be run there.
    """
    placement = all_on(problem, device)
    measurement = runtime.measure(problem, placement, runnable, effort, traces=num_traces)
    if not measurement.feasible:
        raise PlacetoError(
            f"graph {problem.graph.name!r} on {problem.cluster.devices[device].name!r}: "
            f"cannot be run: {measurement.reason}"
        )
    name = str(problem.cluster.tensorflow_devices()[device])
    numbers = {op: number for number, op in enumerate(problem.graph.op_names)}
    traces = [read_trace(trace, [name]) for trace in measurement.traces]
    return Profile(
        (measurement.step_time,),
        np.stack([op_seconds(trace, numbers) for trace in traces]),
        tuple(gap_seconds(trace) for trace in traces),
        measurement.pace,
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


def confirm(
    kinds: Sequence[str],
    profiles: list[Profile],
    run_again: Callable[[], list[Profile]],
    profile_again: Callable[[], list[Profile]],
    most: int = TRIES,
) -> tuple[list[Profile], list[float], int]:
    """Profiles that a second run agrees with, within `WITHIN`; those of all tries, after `most`.

    A machine that does something else for a while makes every figure of that while wrong. A second
    run on cores that were slowed down says nothing of profiles on cores that were not.

    Args:
        kinds: (num_devices,) kind of each device; those of one kind are taken to be equal.
        profiles: (num_devices,) the first ones.
        run_again: (num_devices,) further ones, of a second run.
        profile_again: makes such profiles again.
        most: tries.

    Returns:
        (num_devices,) profiles that count, (num_devices,) seconds of a step when the graph ran
        again, and how often it was profiled.
    """
    tries = 1
    while True:
        again = run_again()
        seconds = [each.step_seconds for each in again]
        both = zip(profiles, again, strict=True)
        told = [other.pace <= CALM or one.pace > CALM for one, other in both]
        if tries == most or farthest(kinds, profiles, seconds, told) <= WITHIN:
            return profiles, seconds, tries
        fresh = profile_again()
        profiles = [one.joined(other) for one, other in zip(profiles, fresh, strict=True)]
        tries += 1


def farthest(
    kinds: Sequence[str],
    profiles: Sequence[Profile],
    again: Sequence[float],
    told: Sequence[bool],
) -> float:
    """How far a step on any device is from the mean of those profiled on its kind, as a fraction.

    All are (num_devices,); `again` is in seconds, and counts where `told`.
    """
    steps = np.array([each.step_seconds for each in profiles])
    expected = [steps[[other == kind for other in kinds]].mean() for kind in kinds]
    off = np.abs(np.array(expected) / again - 1)
    return float(np.where(told, off, 0.0).max())


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
        step_seconds: mean over the devices of the median step.
        gap_seconds: median between a kernel and the next.
    """

    column: Floats
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
        if not self.is_whole:
            return 1.0
        left = self.step_seconds - launch.step_overhead - self.num_ops * launch.op_overhead
        return left / self.kernel_seconds if left > 0 and self.kernel_seconds > 0 else 1.0


def run_of_kind(problem: PlacementProblem, profiles: Sequence[Profile], device: int) -> KindRun:
    """A graph on the devices of one kind, profiled on each; `device` is one of their numbers."""
    allowed = problem.allowed[:, device][problem.op_group]
    return KindRun(
        np.where(allowed, typical(profiles), np.inf),
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
