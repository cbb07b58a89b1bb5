"""The overhead of an op, from what a step takes longer than the kernels in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placeto.support.arrays import Floats, Ints


@dataclass(frozen=True)
class StepOverheads:
    """What a step on one device takes besides its kernels.

    Attributes:
        op_overhead: seconds an op.
        step_overhead: seconds a step, to start it and to hear of its end.
    """

    op_overhead: float
    step_overhead: float


def fit_overheads(
    step_seconds: Floats,
    kernel_seconds: Floats,
    num_ops: Ints,
    step_overhead: float,
    gap_seconds: float,
) -> StepOverheads:
    """Least squares of step = kernels + ops * op_overhead + step_overhead.

    Residuals are relative to the step, so that a graph of long steps does not count for more.

    Args:
        step_seconds: (n,) measured, above 0.
        kernel_seconds: (n,) sum of the kernels in each.
        num_ops: (n,) ops of non-zero time in each.
        step_overhead: seconds of a step of nothing.
        gap_seconds: between one kernel and the next, as traced; tracing lengthens it, so that no
            overhead is above it. What steps take longer than that is not the ops' number's doing.
    """
    weight = num_ops / np.square(step_seconds)
    left = step_seconds - kernel_seconds - step_overhead
    total = float(np.sum(weight * num_ops))
    fitted = float(np.sum(weight * left)) / total if total > 0 else 0.0
    return StepOverheads(min(max(fitted, 0.0), gap_seconds), step_overhead)


def stretch(
    step_seconds: float, kernel_seconds: float, num_ops: int, launch: StepOverheads
) -> float:
    """By how much kernels take longer within a step than their medians say, as a factor.

    Medians leave out what slows down now one op and now another, and a traced kernel is not quite
    as fast as one that is not.

    Args:
        step_seconds: measured.
        kernel_seconds: sum of the kernels' medians.
        num_ops: ops of non-zero time.
        launch: the device's overheads.

    Returns:
        The factor by which op times must be multiplied for the step to take as long as measured;
        1 where the overheads alone are longer.
    """
    left = step_seconds - launch.step_overhead - num_ops * launch.op_overhead
    return left / kernel_seconds if left > 0 and kernel_seconds > 0 else 1.0
