"""`placeto place --measure`: the best few placements of a search, run for real."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeto.cli.output import progress
from placeto.measurement import Measurement, Runnable, Runtime, RuntimeSettings, find_runnable
from placeto.placement import Placement
from placeto.problem import PlacementProblem
from placeto.reports.rows import CandidateRow, measurement_row, seconds
from placeto.search.incumbent import RECENT
from placeto.simulation import simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

USUAL = 3


@dataclass(frozen=True)
class Measuring:
    """How many candidates of a search to run at most, and with what; see `prepare`."""

    count: int
    runtime: Runtime
    runnable: Runnable


def prepare(
    asked: Sequence[int], problem: PlacementProblem, settings: RuntimeSettings
) -> Measuring:
    """Finds, before a long search, what running its placements needs, as `--measure` asks for.

    Raises:
        PlacetoError: not one number that makes sense, a cluster or a graph that cannot be run.
    """
    if len(asked) > 1 or not all(1 <= count <= RECENT for count in asked):
        text = " ".join(map(str, asked))
        raise PlacetoError(f"--measure {text}: expected one number from 1 to {RECENT}")
    runtime = Runtime(problem.cluster, settings)
    with progress(f"measuring {problem.graph.name}") as report:
        report("finding its GraphDef")
        runnable = find_runnable(problem.graph)
    return Measuring(asked[0] if asked else USUAL, runtime, runnable)


def keep_fastest(
    measuring: Measuring, placement: Placement, single: Placement
) -> tuple[Placement, list[CandidateRow]]:
    """Runs the candidates of a search, and the best single device if it fits, each twice.

    Returns:
        The placement with the devices of the fastest one that ran, or as it was if none ran;
        `interrupted` after Ctrl-C, which leaves the fastest until then. And a row for each one that
        was run: `method`, `simulated_step_time`, `kept`, and the keys of `measurement_row`.

    Raises:
        PlacetoError: the processes cannot be started.
    """
    problem = placement.problem
    found = placement.candidates[: measuring.count] or (placement.devices,)
    methods, many = [placement.method] * len(found), list(found)
    if single.feasible and not any(np.array_equal(single.devices, each) for each in many):
        methods.append(single.method)
        many.append(single.devices)
    simulated = simulate_many(problem, np.stack(many))
    measurements, interrupted = _run_twice(measuring, problem, many)
    ran = [number for number in measurements if measurements[number].feasible]
    best = min(ran, key=lambda number: measurements[number].step_time, default=None)
    rows: list[CandidateRow] = [
        {
            "method": methods[number],
            "simulated_step_time": seconds(float(simulated.step_time[number])),
            "kept": number == best,
            **measurement_row(measurement),
        }
        for number, measurement in measurements.items()
    ]
    if best is not None:
        placement = replace(
            placement,
            devices=many[best],
            step_time=float(simulated.step_time[best]),
            peak_memory=simulated.peak_memory[best],
            feasible=bool(simulated.feasible[best]),
            found_by=placement.found_by if best < len(found) else single.method,
        )
    return replace(placement, interrupted=interrupted), rows


def _run_twice(
    measuring: Measuring, problem: PlacementProblem, many: Sequence[Ints]
) -> tuple[dict[int, Measurement], bool]:
    """Both runs of each placement as one measurement, by its number; whether Ctrl-C ended it."""
    measurements: dict[int, Measurement] = {}
    # There and back: a machine that slows down, or speeds up, does so for all of them.
    runs = [*range(len(many)), *reversed(range(len(many)))]
    try:
        with (
            progress(f"measuring {problem.graph.name} on {problem.cluster.name}") as report,
            measuring.runtime as runtime,
        ):
            for count, number in enumerate(runs, 1):
                before = measurements.get(number, Measurement())
                if before.feasible:
                    report(f"run {count} of {len(runs)}")
                    run = runtime.measure(problem, many[number], measuring.runnable)
                    both = before.samples + run.samples if run.feasible else ()
                    measurements[number] = replace(run, samples=both)
    except KeyboardInterrupt:
        return measurements, True
    return measurements, False
