"""The loop: search, measure, correct the costs, search again."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from placeto.measurement import Effort, Runnable, Runtime
from placeto.measurement.trials.bench import Bench
from placeto.measurement.trials.candidate import Candidate, noise
from placeto.measurement.trials.correction import Correction, correct
from placeto.placement import Placement
from placeto.placers.measured.search import AGAIN_A_ROUND, Search, worth_running
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent

LEAST_RUNS = 4
EFFORT = Effort(warm_up=1, steps=5)


@dataclass(frozen=True, eq=False)
class Measured:
    """The fastest placement that was run, and all others.

    Attributes:
        placement: of the problem as given; simulated with its costs. That of the first search if
            none could be run.
        candidates: those that were run, or failed to, in the order of their first runs.
        kept: the fastest of them; None if none could be run.
        noise: the share by which two runs of a placement differ, each beside the single device.
        stopped: why there were no more runs, in a few words.
        correction: the costs that agree best with all runs.
    """

    placement: Placement
    candidates: Sequence[Candidate]
    kept: Candidate | None
    noise: float
    stopped: str
    correction: Correction


def place_measured(
    problem: PlacementProblem,
    runtime: Runtime,
    runnable: Runnable,
    method: str = "auto",
    budget_seconds: float = 30.0,
    seed: int = 0,
    settings: Mapping[str, object] | None = None,
    runs: int = 20,
    run_seconds: float = np.inf,
    effort: Effort = EFFORT,
    progress: Progress = silent,
) -> Measured:
    """Finds the placement that is fastest when it is run.

    The best single device is run first, and then in turn with each of the others, a step of each:
    what slows the machine down slows both, and their ratio counts. A round corrects the costs by
    all runs so far, searches with them, runs the fastest placements that were found and differ, and
    one that some model believes in and others do not; then once more those that may be the fastest.
    It is over when no run is expected to gain more than the noise, as far as predictions can be
    believed by what ran, and nothing undecided is left.

    A placement that fails costs a run, or two where a process died.

    Args:
        problem: the costs as believed; runs keep the order that is simulated with these.
        runtime: what runs placements.
        runnable: the graph's GraphDef.
        method: a placer.
        budget_seconds: seconds of search, all rounds together.
        seed: where the placer's random numbers start.
        settings: what to change in the placer's configuration.
        runs: how many runs at most.
        run_seconds: no run begins when all runs have taken so many.
        effort: how many steps a run has.
        progress: told of what is going on, in single lines.

    Returns:
        What was measured to be the fastest; after an interrupt (Ctrl-C), until then.

    Raises:
        PlacetoError: fewer than `LEAST_RUNS`, no seconds for runs, a method that does not apply to
            the problem, or processes that cannot be started.
        KeyboardInterrupt: before anything was run or found.
    """
    if runs < LEAST_RUNS:
        raise PlacetoError(f"runs is {runs}, expected a number from {LEAST_RUNS}")
    if not run_seconds > 0:
        raise PlacetoError(f"run_seconds is {run_seconds}, expected a number above 0")
    began = time.monotonic()
    bench = Bench(problem, runtime, runnable, effort, runs, run_seconds, progress)
    search = Search(problem, method, budget_seconds, seed, settings, runs, progress)
    interrupted, correction = False, Correction(problem)
    try:
        single = place(problem, "single")
        if single.feasible:
            bench.run(Candidate(single.devices, "single", single.step_time))
        for number in count():
            correction = correct(problem, bench.observed())
            search.go(correction.problem)
            fresh = worth_running(search, bench, correction.problem, first=number == 0)
            if not fresh and not bench.undecided() and search.go_on(correction.problem):
                fresh = worth_running(search, bench, correction.problem, first=number == 0)
            # What is fresh must leave runs to tell the fastest apart.
            fresh = fresh[: max(bench.left - AGAIN_A_ROUND, 1)]
            if not fresh and not bench.undecided():
                bench.stopped = "no run is expected to gain more than the noise"
            if bench.stopped:
                break
            for candidate in fresh:
                bench.run(candidate)
            bench.predict(correct(problem, bench.observed()).problem)
            for candidate in bench.undecided()[:AGAIN_A_ROUND]:
                bench.run(candidate)
            if bench.stopped:
                break
    except KeyboardInterrupt:
        if not bench.best and search.placement is None:
            raise
        interrupted, bench.stopped = True, "interrupted"
        progress("interrupted; keeping the fastest so far")
    else:
        correction = correct(problem, bench.observed())
    bench.predict(correction.problem)
    best = bench.best
    placement = _placement(problem, search, method, best)
    placement = replace(
        placement, interrupted=interrupted, seed=seed, wall_seconds=time.monotonic() - began
    )
    tried = tuple(each for each in bench.candidates if each.runs or each.reason)
    return Measured(placement, tried, best, noise(bench.candidates), bench.stopped, correction)


def _placement(
    problem: PlacementProblem, search: Search, method: str, best: Candidate | None
) -> Placement:
    """What is returned: the fastest's devices, with the costs as given; else the first found."""
    found = search.placement
    if found is None:
        assert best is not None
        found = Placement(problem, best.devices, np.inf, np.zeros(0, np.int64), False, method)
    devices = found.devices if best is None else best.devices
    schedule = simulate(problem, devices)
    return replace(
        found,
        problem=problem,
        devices=devices,
        step_time=schedule.step_time,
        peak_memory=schedule.peak_memory,
        feasible=schedule.feasible,
        found_by=found.found_by if best is None else best.found_by,
        evaluations=search.evaluations,
    )
