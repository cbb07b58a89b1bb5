"""Placements run in turn, round after round, and what else the machine did meanwhile."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from benchmarks.measuring import Case
from benchmarks.processes import busy_seconds, processor_seconds
from placeto import place
from placeto.cluster import Cluster
from placeto.measurement import Runtime, RuntimeSettings
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json

# How the placements are run: as `placeto measure` does, and as it did before steps were kept in
# order, memory was kept and threads were to spare.
NOW, BEFORE = "now", "before"
SETTINGS = {
    NOW: RuntimeSettings(),
    BEFORE: RuntimeSettings("none", keeps_memory=False, serving_threads=0),
}
# Of one core. A run that others took more of is made again, and the one they took least of counts.
FOREIGN = 0.05
TRIES = 2
CANDIDATES = 3  # placements of a search that are run

Runtimes = Mapping[str, Runtime]
Row = dict[str, Any]


@contextmanager
def runtimes(cluster: Cluster) -> Iterator[Runtimes]:
    """A runtime with each of the settings; those that nothing is run in are never started."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Runtime(cluster, settings))
            for name, settings in SETTINGS.items()
        }


def alternate(runtimes: Runtimes, case: Case, rows: Sequence[Row], rounds: int) -> Iterator[Row]:
    """Runs all placements once a round, in every other round from the last to the first.

    Args:
        runtimes: of the problem's cluster.
        case: what is placed and run.
        rows: a placement each: `label`, `devices` (a digit a group), `runtime` (which one runs it),
            `runs` (those that were made, which are not made again) and `reason` (why it cannot be
            run). What is found is put into `runs` and `reason`.
        rounds: how often.

    Yields:
        A row after each run.
    """
    for number in range(rounds):
        for row in rows if number % 2 == 0 else reversed(rows):
            if row["reason"] or len(row["runs"]) > number:
                continue
            run = _quiet(runtimes[row["runtime"]], case, digits(row["devices"]))
            row["reason"] = told = run.pop("reason")
            if not row["reason"]:
                row["runs"].append(run)
                told = f"{measured(row):.4g} s, others had {run['foreign']:.0%}"
            print(f"{case.problem.graph.name}: {row['label']}: {told}", file=sys.stderr, flush=True)
            yield row


def contest(
    case: Case, rounds: int, kept: Path, enter: Callable[[Runtimes], list[Row]]
) -> list[Row]:
    """Runs in turn what enters a contest; goes on where it was stopped.

    Args:
        case: what is placed and run.
        rounds: how often.
        kept: a file for the rows, written after each run.
        enter: makes the rows, where that file is not there yet; see `alternate`.

    Returns:
        The rows.
    """
    with runtimes(case.problem.cluster) as started:
        rows: list[Row] = read_json(kept)["rows"] if kept.exists() else enter(started)
        write_json(kept, {"rows": rows})
        for _ in alternate(started, case, rows, rounds):
            write_json(kept, {"rows": rows})
    return rows


def candidates(problem: PlacementProblem, method: str, seconds: float) -> list[Ints]:
    """The fastest few placements that a placer came by, the best first."""
    placement = place(problem, method, seconds)
    return list(placement.candidates or (placement.devices,))[:CANDIDATES]


def fastest(runtimes: Runtimes, case: Case, rows: Sequence[Row]) -> Row:
    """The row whose placement is the fastest when each is run once; that run is not in it."""
    for _ in alternate(runtimes, case, rows, 1):
        pass
    return min(ran(rows), key=measured) | {"runs": []}


def row_of(label: str, devices: Ints, runtime: str = NOW, **more: Any) -> Row:
    """A placement that was not run yet; see `alternate`."""
    digits = "".join(map(str, np.asarray(devices).tolist()))
    rest = {"devices": digits, "runs": [], "reason": ""}
    return {"label": label, "runtime": runtime, **more, **rest}


def ran(rows: Sequence[Row]) -> list[Row]:
    """Rows of placements that ran."""
    return [row for row in rows if row["runs"] and not row["reason"]]


def measured(row: Row) -> float:
    """Median seconds of all steps of a placement that ran."""
    return float(median(sample for run in row["runs"] for sample in run["samples"]))


def round_medians(row: Row) -> list[float]:
    """Median seconds of the steps of each round."""
    return [median(run["samples"]) for run in row["runs"]]


def digits(text: str) -> Ints:
    """(num_groups,) devices, from a digit a group."""
    return np.array([int(digit) for digit in text])


def _quiet(runtime: Runtime, case: Case, devices: Ints) -> dict[str, Any]:
    """One run that others hardly disturb; `foreign` is how many cores others had meanwhile."""
    tries: list[dict[str, Any]] = []
    while len(tries) < TRIES:
        begin, before, own = monotonic(), busy_seconds(), _own_seconds(runtime)
        measurement = runtime.measure(case.problem, devices, case.runnable, case.effort)
        busy = busy_seconds() - before - (_own_seconds(runtime) - own)
        foreign = round(busy / (monotonic() - begin), 3)
        found = {"samples": list(measurement.samples), "foreign": foreign}
        tries.append({**found, "reason": measurement.reason})
        if measurement.reason or foreign <= FOREIGN:
            return tries[-1]
    return min(tries, key=lambda run: run["foreign"])


def _own_seconds(runtime: Runtime) -> float:
    return sum(processor_seconds(pid) for pid in (*runtime.process_ids.values(), None))
