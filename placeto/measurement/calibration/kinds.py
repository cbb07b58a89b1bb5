"""What was measured on the devices of one kind, which are taken to be equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeto.measurement.calibration.launch import StepOverheads, fit_overheads, stretch
from placeto.measurement.calibration.profile import Profile, typical

if TYPE_CHECKING:
    from placeto.problem import PlacementProblem
    from placeto.support.arrays import Floats


@dataclass(frozen=True, eq=False)
class KindRun:
    """A graph that ran as a whole on the devices of one kind, one after the other.

    Attributes:
        column: (num_ops,) median seconds of each op's kernel; infinite where it cannot run.
        step_seconds: mean over the devices of the median step.
        gap_seconds: median between two kernels.
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
        """Factor of the column; see `stretch`. 1 if a step was not on these devices alone."""
        if not self.is_whole:
            return 1.0
        return stretch(self.step_seconds, self.kernel_seconds, self.num_ops, launch)


def run_of_kind(problem: PlacementProblem, profiles: Sequence[Profile], device: int) -> KindRun:
    """A graph on the devices of one kind.

    Args:
        problem: the graph.
        profiles: on each device of the kind.
        device: number of one of them.
    """
    allowed = problem.allowed[:, device][problem.op_group]
    return KindRun(
        np.where(allowed, typical(profiles), np.inf),
        float(np.mean([each.step_seconds for each in profiles])),
        float(np.median([each.gap_seconds for each in profiles])),
    )


def launch_of_kind(runs: Sequence[KindRun], idle_seconds: Sequence[float]) -> StepOverheads:
    """The overheads of one kind.

    Args:
        runs: each graph on its devices.
        idle_seconds: of a step of nothing on each device.
    """
    whole = [each for each in runs if each.is_whole]
    return fit_overheads(
        np.array([each.step_seconds for each in whole]),
        np.array([each.kernel_seconds for each in whole]),
        np.array([each.num_ops for each in whole], dtype=np.int64),
        float(np.median(idle_seconds)),
        float(np.median([each.gap_seconds for each in runs])),
    )
