"""The overhead of an op, from what a step takes longer than the kernels in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeto.measurement.calibration.profile import Profile, typical
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats


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
