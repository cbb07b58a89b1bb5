"""The runs: how many are left, what they said, and which placements they leave undecided."""

import time
from dataclasses import dataclass, field

import numpy as np

from placeto.measurement import Effort, Measurement, Runnable, Runtime
from placeto.measurement.trace import read_trace
from placeto.measurement.trials.candidate import Candidate, noise
from placeto.measurement.trials.correction import Observed, kernel_seconds
from placeto.problem import PlacementProblem
from placeto.simulation import step_times
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress

MOST_RUNS_OF_ONE = 4
DOUBTED_RUNS = 3  # so many are believed, whatever the costs as corrected say
# Two placements are as fast as each other below twice the noise, or this share.
LEAST_MARGIN = 0.02


@dataclass(eq=False)
class Bench:
    """The runs: how many are left, and what they said."""

    problem: PlacementProblem
    runtime: Runtime
    runnable: Runnable
    effort: Effort
    left: int
    seconds_left: float
    progress: Progress
    stopped: str = ""
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def best(self) -> Candidate | None:
        """The fastest that ran."""
        ran = [each for each in self.candidates if each.ran]
        return min(ran, key=lambda each: each.ratio, default=None)

    @property
    def reference(self) -> Candidate | None:
        """What takes turns with all others: the first that runs, the single device if it does."""
        return next((each for each in self.candidates if each.ran), None)

    def run(self, candidate: Candidate) -> None:
        """Runs a placement in turn with the reference, once more if a process dies.

        No more of any are run if none are left.
        """
        if self.stopped:
            return
        if candidate not in self.candidates:
            self.candidates.append(candidate)
        while not self.stopped and not candidate.reason:
            total = self.left + sum(len(each.runs) + each.failures for each in self.candidates)
            self.progress(f"run {total - self.left + 1} of at most {total}: {candidate.found_by}")
            began = time.monotonic()
            try:
                first = self.reference or candidate
                many = [first.devices, candidate.devices] if first.ran else [candidate.devices]
                *beside, run = self.runtime.compare(
                    self.problem, np.stack(many), self.runnable, self.effort, traces=1
                )
            except PlacetoError as error:
                if self.best is None:
                    raise
                self.stopped = f"nothing can be run any more: {error}"
                return
            self.left -= 1
            self.seconds_left -= time.monotonic() - began
            if not self.left:
                self.stopped = "all runs were made"
            elif self.seconds_left <= 0:
                self.stopped = "runs have no seconds left"
            if run.feasible:
                self._take(candidate, run, *beside)
                return
            candidate.failures += 1
            if not run.died or candidate.failures > 1 or self.stopped:
                candidate.reason = run.reason

    def observed(self) -> list[Observed]:
        """What the placements that ran said."""
        ran = [each for each in self.candidates if each.ran]
        # A run's kernels are as slow as the reference was beside it.
        whole = min((seconds for each in ran for seconds in each.beside), default=np.nan)
        found = []
        for each in ran:
            runs = zip(each.kernels, each.beside, strict=True)
            kernels = [traced * (whole / seconds) for run, seconds in runs for traced in run]
            known = np.array(kernels).reshape(-1, self.problem.graph.num_ops)
            found.append(Observed(each.devices, each.ratio * whole, known))
        return found

    def predict(self, corrected: PlacementProblem) -> None:
        """Gives all placements their step time by corrected costs, and up those that are slower."""
        if not self.candidates:
            return
        many = np.stack([each.devices for each in self.candidates])
        for each, seconds in zip(self.candidates, step_times(corrected, many), strict=True):
            each.predicted_step_time = float(seconds)
        if best := self.best:
            most = best.ratio * (1 + self._margin())
            for each in self.candidates:
                # One run, or even two, may have been disturbed from the first step to the last.
                share = each.predicted_step_time / best.predicted_step_time
                doubted = len(each.runs) < DOUBTED_RUNS and share * best.ratio < most
                each.given_up = each.ratio > most and not doubted

    def undecided(self) -> list[Candidate]:
        """Those of which one more run may change which is the fastest; the least run first."""
        first, best = self.reference, self.best
        near = [each for each in self.candidates if each.ran and not each.given_up]
        near = [each for each in near if each is not first]
        most = MOST_RUNS_OF_ONE if len(near) > 1 or best is first else 2
        near = [each for each in near if len(each.runs) < most]
        return sorted(near, key=lambda each: (len(each.runs), each.ratio))

    def _margin(self) -> float:
        return max(2 * noise(self.candidates), LEAST_MARGIN)

    def _take(
        self, candidate: Candidate, run: Measurement, beside: Measurement | None = None
    ) -> None:
        reference = beside or run
        candidate.runs.append(run)
        candidate.beside.append(reference.step_time)
        candidate.turns.append(np.array(run.samples) / np.array(reference.samples))
        candidate.kernels.append([])
        names = [str(device) for device in self.problem.cluster.tensorflow_devices()]
        for data in run.traces:
            try:
                trace = read_trace(data, names)
            except PlacetoError:
                continue  # its steps count; what its ops took stays unknown
            candidate.kernels[-1].append(kernel_seconds(self.problem, candidate.devices, trace))
