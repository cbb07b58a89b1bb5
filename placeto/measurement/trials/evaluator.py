"""An evaluator of few runs, which correct the costs that all else is simulated with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placeto.measurement.evaluator import Asked, MeasuringEvaluator, key_of
from placeto.measurement.measured import Effort, Measurement
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.measurement.trials.bench import Bench
from placeto.measurement.trials.candidate import Candidate, differ
from placeto.measurement.trials.correction import correct
from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes, simulate_many, step_times
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.progress import silent

FIRST_RUNS = 4  # of placements, whatever is predicted of them
RUNS_OF_FASTEST = 2  # one may have been lucky
GAIN = 0.02  # least share by which a placement must be predicted to be faster, to be run
NOT_RUN = Measurement(reason="not run, but simulated with the costs that the runs say")


@dataclass(eq=False)
class _Trials:
    """Of a problem: its runs, and the costs that they say."""

    bench: Bench
    costs: PlacementProblem
    known: dict[bytes, Candidate] = field(default_factory=dict)
    left: int = -1  # how many runs were left when the costs were corrected

    def corrected(self) -> PlacementProblem:
        if self.left != self.bench.left:
            self.costs = correct(self.bench.problem, self.bench.observed()).problem
            self.left = self.bench.left
        return self.costs

    def unit(self) -> float:
        """What makes simulated seconds those of the first that ran."""
        first = self.bench.reference
        if first is None:
            return 1.0
        return first.beside[0] / max(float(step_times(self.costs, first.devices[None])[0]), 1e-12)

    def fastest(self) -> float:
        """Seconds of the fastest that ran; infinite if none did."""
        best, first = self.bench.best, self.bench.reference
        return np.inf if best is None or first is None else best.ratio * first.beside[0]

    def asks_for_a_run(self, devices: Ints, seconds: float) -> bool:
        """Whether a placement that is predicted to take so long is run, or once more."""
        bench = self.bench
        if not bench.left:
            return False
        if known := self.known.get(key_of(devices)):
            first = known is bench.reference
            return known is bench.best and not first and len(known.runs) < RUNS_OF_FASTEST
        if len(bench.candidates) >= FIRST_RUNS and seconds > (1 - GAIN) * self.fastest():
            return False
        return differ(bench.problem, devices, [each.devices for each in bench.candidates])


class CorrectingEvaluator(MeasuringEvaluator):
    """Step times from few runs: where a policy asks for thousands of placements, or runs are dear.

    As `placeto place --measure` does, it runs what may be the fastest, and lets the runs correct
    the costs that everything else is simulated with. Of each problem it runs the first
    `FIRST_RUNS` placements that it is asked for, and later ones only if the corrected costs say
    that they are faster than the fastest that ran, by a share of `GAIN`; those that differ in
    little work from one that ran it does not run. Whatever is the fastest is run a second time when
    it is asked for again. So nothing much faster than what ran is believed as long as there are
    runs left, and `fastest` is of what ran alone.

    Each run is in turn with the first placement that ran, a step of each, and a step time is the
    median ratio times the first's own: a machine that is slower for a while changes nothing.

    Args:
        runtime: runs the placements; the evaluator's from now on.
        most_runs: of each problem.
        effort: how many steps a run has.
        runnables: GraphDefs by the name of the graph; those of others are found by `find_runnable`.

    Raises:
        PlacetoError: fewer than `FIRST_RUNS` runs.
    """

    def __init__(
        self,
        runtime: Runtime,
        most_runs: int,
        effort: Effort | None = None,
        runnables: Mapping[str, Runnable] | None = None,
    ) -> None:
        if most_runs < FIRST_RUNS:
            raise PlacetoError(f"runs is {most_runs}, expected a number from {FIRST_RUNS}")
        super().__init__(runtime, effort, runnables)
        self._most_runs = most_runs
        self._trials: dict[PlacementProblem, _Trials] = {}

    def measurement(self, problem: PlacementProblem, devices: Ints) -> Measurement:
        """What the runs of a placement yielded, in seconds of the first; `NOT_RUN` if none did."""
        known = self._known.get(problem, {}).get(key_of(devices))
        return NOT_RUN if known is None else known.measurement

    def _simulate(self, problem: PlacementProblem, many: Ints) -> Outcomes:
        if problem not in self._trials:
            runnable = self._runnable(problem)
            bench = Bench(
                problem, self._runtime, runnable, self.effort, self._most_runs, np.inf, silent
            )
            self._trials[problem] = _Trials(bench, problem)
        return simulate_many(self._trials[problem].corrected(), many)

    def _ask(self, problem: PlacementProblem, many: Ints, simulated: Outcomes) -> list[Asked]:
        trials = self._trials[problem]
        each = list(zip(many, simulated.step_time.tolist(), simulated.feasible, strict=True))
        for devices, seconds, fits in each:
            if fits and trials.asks_for_a_run(devices, trials.unit() * seconds):
                self._try(trials, devices, seconds)
        unit, known = trials.unit(), self._known.get(problem, {})
        return [
            known.get(key_of(devices)) or Asked(NOT_RUN, unit * seconds, bool(fits))
            for devices, seconds, fits in each
        ]

    def _try(self, trials: _Trials, devices: Ints, seconds: float) -> None:
        """Runs a placement, perhaps not for the first time."""
        bench, key = trials.bench, key_of(devices)
        candidate = trials.known.setdefault(key, Candidate(devices.copy(), "asked for", seconds))
        left = bench.left
        bench.run(candidate)
        self.runs += left - bench.left
        if bench.stopped and bench.left:
            raise PlacetoError(bench.stopped)
        known = self._known.setdefault(bench.problem, {})
        first = bench.reference
        if candidate.ran and first is not None:
            samples = first.beside[0] * np.concatenate(candidate.turns)
            measured = Measurement(tuple(samples.tolist()))
            known[key] = Asked(measured, measured.step_time, fits=True)
        else:
            self.failures.append(candidate.measurement.reason)
            known[key] = Asked(candidate.measurement, self._failed(bench.problem), fits=False)
