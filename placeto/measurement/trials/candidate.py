"""A placement that is run, what its runs said, and how fast it is beside others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, permutations

import numpy as np

from placeto.measurement import Measurement
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints

LEAST_NOISE, MOST_NOISE = 0.005, 0.05
# Shares of the work on other devices, below which two placements are the same for the loop.
LEAST_DIFFERENCE = 0.02
_MOST_PERMUTED = 4
# Of a median of normal samples, in median distances over the root of their number.
_ERROR = 1.86


@dataclass(eq=False)
class Candidate:
    """A placement that is run, or may be.

    Attributes:
        devices: (num_groups,) device of each group.
        found_by: the placer that found it.
        simulated_step_time: seconds by the problem as given.
        predicted_step_time: seconds by the problem as corrected by all runs.
        runs: those that went well.
        beside: of each run, median seconds of the reference's steps in the same turns.
        turns: of each run, (num_turns,) seconds of its steps over the reference's.
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
    beside: list[float] = field(default_factory=list)
    turns: list[Floats] = field(default_factory=list)
    kernels: list[list[Floats]] = field(default_factory=list)
    reason: str = ""
    failures: int = 0
    given_up: bool = False

    @property
    def ran(self) -> bool:
        """Whether it was run, and nothing went wrong."""
        return bool(self.runs) and not self.reason

    @property
    def ratio(self) -> float:
        """Seconds of a step over the reference's, the median of all turns; infinite unless it ran.

        What slows the machine for longer than a turn slows both.
        """
        return float(np.median(np.concatenate(self.turns))) if self.ran else np.inf

    @property
    def measurement(self) -> Measurement:
        """All steps of all runs, or why it failed."""
        if not self.ran:
            return Measurement(reason=self.reason or "it was not run")
        samples = tuple(second for run in self.runs for second in run.samples)
        return replace(self.runs[-1], samples=samples, traces=())


def noise(candidates: Iterable[Candidate]) -> float:
    """The share by which two runs of one placement differ, each beside the reference.

    That is the median over placements that were run twice; where none was, the standard error of
    a run's ratio, by the median distance of its turns from their median.
    """
    gaps, errors = [], []
    for each in candidates:
        runs = [float(np.median(turns)) for turns in each.turns]
        gaps += [abs(second / first - 1) for first, second in pairwise(runs)]
        errors += [
            float(_ERROR * np.median(np.abs(turns / ratio - 1)) / np.sqrt(len(turns)))
            for turns, ratio in zip(each.turns, runs, strict=True)
        ]
    found = gaps or errors or [LEAST_NOISE]
    return float(np.clip(np.median(found), LEAST_NOISE, MOST_NOISE))


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
