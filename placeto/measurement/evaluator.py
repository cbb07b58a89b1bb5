"""An evaluator that runs placements instead of simulating them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from placeto.measurement.measured import Effort, Measurement
from placeto.measurement.runnable import Runnable, find_runnable
from placeto.measurement.runtime import Runtime
from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes, simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

FAILED_RATIO = 2.0


@dataclass(frozen=True)
class Asked:
    """What is known of a placement that was asked for.

    Attributes:
        measurement: what its run yielded.
        step_time: seconds, finite even where it failed.
        fits: whether it is taken to be feasible.
    """

    measurement: Measurement
    step_time: float
    fits: bool


class MeasuringEvaluator:
    """Measured step times, by the protocol of `placeto.simulation.Evaluator`.

    Measured are the step time, the median of the steps that `effort` asks for, and whether the
    placement is feasible: whether it ran. Simulated are the peak memory, which for a placement
    that ran is cut at the devices' memory, as that was enough; and the start times of the groups,
    stretched as the measured step time is over the simulated one.

    A placement is run when it is first asked for. Its outcome is remembered by its devices, and is
    the same ever after: noise is for `effort` to deal with, by more steps or a precision. One
    that fails is run again before it is given up, as the failure may not have been its own: another
    process can have had the memory, or somebody killed a worker. The step time of one that is
    given up is `FAILED_RATIO` times that of the slowest placement of the problem that ran until
    then, or the deadline if none did. That is worse than what ran, and of the same order: beside
    the deadline, the differences between placements that run would be lost in a policy's rewards.

    Use it in a `with` block, or close it: the processes are gone then. So they are when this
    process ends.

    Args:
        runtime: runs the placements; the evaluator's from now on.
        effort: how many steps a placement is given.
        runnables: GraphDefs by the name of the graph; those of others are found by `find_runnable`.
        attempts: how often a placement that fails is run.

    Attributes:
        runs: how many placements were run, repetitions counted.
        failures: the reasons of all runs that failed, in their order.
    """

    def __init__(
        self,
        runtime: Runtime,
        effort: Effort | None = None,
        runnables: Mapping[str, Runnable] | None = None,
        attempts: int = 2,
    ) -> None:
        if attempts < 1:
            raise PlacetoError(f"attempts is {attempts}, expected a number from 1")
        self.effort = effort or Effort()
        self.runs = 0
        self.failures: list[str] = []
        self._runtime = runtime
        self._attempts = attempts
        self._runnables = dict(runnables or {})
        self._known: dict[PlacementProblem, dict[bytes, Asked]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> Self:
        # Gymnasium copies the arguments of environments; processes cannot be copied.
        return self

    def close(self) -> None:
        """Ends the processes; they are started again if another placement is asked for."""
        self._runtime.close()

    def __call__(self, problem: PlacementProblem, many: Ints) -> Outcomes:
        """Runs those of (batch, num_groups) placements that are not known yet, one by one.

        Raises:
            PlacetoError: a problem of another cluster, a graph that cannot be run, or processes
                that cannot be started.
        """
        if problem.cluster != self._runtime.cluster:
            raise PlacetoError(
                f"graph {problem.graph.name!r} is to be placed on {problem.cluster.name!r}, but "
                f"measured on {self._runtime.cluster.name!r}; both must be the same cluster"
            )
        many = np.asarray(many, dtype=np.int64)
        simulated = self._simulate(problem, many)
        asked = self._ask(problem, many, simulated)
        step_time = np.array([each.step_time for each in asked], dtype=float)
        feasible = np.array([each.fits for each in asked], dtype=bool)
        stretch = np.ones(len(asked))
        known = (simulated.step_time > 0) & np.isfinite(simulated.step_time)
        np.divide(step_time, simulated.step_time, out=stretch, where=known)
        peak = simulated.peak_memory
        return Outcomes(
            step_time=step_time,
            peak_memory=np.where(feasible[:, None], np.minimum(peak, problem.memory_limit), peak),
            group_start=simulated.group_start * stretch[:, None],
            feasible=feasible,
        )

    def measurement(self, problem: PlacementProblem, devices: Ints) -> Measurement:
        """What the run of a placement yielded, (num_groups,) devices.

        Raises:
            PlacetoError: it was not asked for yet.
        """
        known = self._known.get(problem, {}).get(key_of(devices))
        if known is None:
            raise PlacetoError(f"graph {problem.graph.name!r}: this placement was not measured yet")
        return known.measurement

    def fastest(self, problem: PlacementProblem) -> Ints:
        """(num_groups,) devices of the fastest placement that ran.

        Raises:
            PlacetoError: none did.
        """
        known = self._known.get(problem, {})
        ran = {key: each.step_time for key, each in known.items() if each.measurement.feasible}
        if not ran:
            raise PlacetoError(f"graph {problem.graph.name!r}: no placement of it ran")
        return np.frombuffer(min(ran, key=ran.__getitem__), dtype=np.int64).copy()

    def _simulate(self, problem: PlacementProblem, many: Ints) -> Outcomes:
        return simulate_many(problem, many)

    def _ask(self, problem: PlacementProblem, many: Ints, _: Outcomes) -> list[Asked]:
        known = self._known.setdefault(problem, {})
        for devices in many:
            if (key := key_of(devices)) not in known:
                measurement = self._run(problem, devices)
                seconds = measurement.step_time if measurement.feasible else self._failed(problem)
                known[key] = Asked(measurement, seconds, measurement.feasible)
        return [known[key_of(devices)] for devices in many]

    def _failed(self, problem: PlacementProblem) -> float:
        """The step time of a placement that is given up."""
        known = self._known.get(problem, {}).values()
        ran = [each.step_time for each in known if each.measurement.feasible]
        return FAILED_RATIO * max(ran) if ran else self.effort.deadline_seconds

    def _runnable(self, problem: PlacementProblem) -> Runnable:
        name = problem.graph.name
        if name not in self._runnables:
            self._runnables[name] = find_runnable(problem.graph)
        return self._runnables[name]

    def _run(self, problem: PlacementProblem, devices: Ints) -> Measurement:
        runnable = self._runnable(problem)
        for _ in range(self._attempts):
            measurement = self._runtime.measure(problem, devices, runnable, self.effort)
            self.runs += 1
            if measurement.feasible:
                break
            self.failures.append(measurement.reason)
        return measurement


def key_of(devices: Ints) -> bytes:
    """What (num_groups,) devices are remembered by."""
    return np.asarray(devices, dtype=np.int64).tobytes()
