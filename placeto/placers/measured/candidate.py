"""A placement that is run, what its runs said, and how fast it is beside others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from placeto.measurement import Measurement
from placeto.measurement.pace import CALM
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints

# Of a run's steps: few slow ones do not show in it, and neither does one that is oddly fast.
LOW = 0.25
LEAST_NOISE, MOST_NOISE = 0.005, 0.05
# Shares of the work on other devices, below which two placements are the same for the loop.
LEAST_DIFFERENCE = 0.02
_MOST_PERMUTED = 4


@dataclass(eq=False)
class Candidate:
    """A placement that is run, or may be.

    Attributes:
        devices: (num_groups,) device of each group.
        found_by: the placer that found it.
        simulated_step_time: seconds by the problem as given.
        predicted_step_time: seconds by the problem as corrected by all runs.
        runs: those that went well.
        kernels: of each run, the seconds of each op in each trace; see `kernel_seconds`.
        reason: why it is not run any more, though no others were faster; empty if it may be.
        failures: runs that ended otherwise.
        given_up: whether others are faster by more than the noise.
    """

    devices: Ints
    found_by: str
    simulated_step_time: float
    predicted_step_time: float = np.inf
    runs: list[Measurement] = field(default_factory=list)
    kernels: list[list[Floats]] = field(default_factory=list)
    reason: str = ""
    failures: int = 0
    given_up: bool = False

    @property
    def ran(self) -> bool:
        """Whether it was run, and nothing went wrong."""
        return bool(self.runs) and not self.reason

    @property
    def calm(self) -> list[int]:
        """Which of the runs had cores that were as fast as ever; without any, all of them."""
        calm = [number for number, run in enumerate(self.runs) if run.pace <= CALM]
        return calm or list(range(len(self.runs)))

    @property
    def low(self) -> float:
        """Seconds of a step while nothing else slowed it; infinite unless it ran.

        What disturbs a run makes it slower, never faster, and often for all of its steps. Of
        several runs the fastest is nearest to the truth.
        """
        return min(low_of(self.runs[number]) for number in self.calm) if self.ran else np.inf

    @property
    def observed(self) -> list[Floats]:
        """(num_ops,) seconds of each op, of each trace of the runs that count."""
        return [seconds for number in self.calm for seconds in self.kernels[number]]

    @property
    def measurement(self) -> Measurement:
        """All steps of all runs, or why it failed."""
        if not self.ran:
            return Measurement(reason=self.reason or "it was not run")
        samples = tuple(second for run in self.runs for second in run.samples)
        return replace(self.runs[-1], samples=samples, traces=())


def low_of(run: Measurement) -> float:
    """Seconds that a quarter of a run's steps stay below."""
    return float(np.quantile(run.samples, LOW))


def noise(candidates: Iterable[Candidate]) -> float:
    """The share by which two runs of one placement differ while little disturbs them.

    That is how much slower the second fastest run is than the fastest, of the quarter of the
    placements run twice where that is least; where none was, how far a run's median is above its
    fast quarter.
    """
    ran = [each for each in candidates if each.ran]
    gaps = []
    for each in ran:
        lows = sorted(low_of(each.runs[number]) for number in each.calm)
        if len(lows) > 1:
            gaps.append(lows[1] / lows[0] - 1)
    if not gaps:
        gaps = [run.step_time / low_of(run) - 1 for each in ran for run in each.runs]
    return float(np.clip(np.quantile(gaps, 0.25), LEAST_NOISE, MOST_NOISE)) if gaps else LEAST_NOISE


def differ(problem: PlacementProblem, devices: Ints, others: Sequence[Ints]) -> bool:
    """Whether a placement has enough of the work elsewhere than each of some others.

    Devices of the same kind and memory are taken for each other where they are few enough to try.
    """
    names = [relabelled for relabelled in _alike(problem)]
    work = np.where(np.isfinite(problem.group_seconds), problem.group_seconds, 0.0).max(axis=1)
    least = LEAST_DIFFERENCE * work.sum()
    moved = (relabelled[devices] != other for other in others for relabelled in names)
    return all(work[where].sum() > least for where in moved)


def _alike(problem: PlacementProblem) -> list[Ints]:
    """(num_devices,) other numbers of the devices, for each way to exchange those of a kind."""
    devices = problem.cluster.devices
    kinds = [(device.kind, device.memory_bytes) for device in devices]
    if len(devices) > _MOST_PERMUTED:
        return [np.arange(len(devices))]
    return [
        np.array(order)
        for order in permutations(range(len(devices)))
        if all(kinds[old] == kinds[other] for old, other in enumerate(order))
    ]
