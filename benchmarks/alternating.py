"""Placements run in turn, round after round, and what else the machine did meanwhile."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from benchmarks.processes import busy_seconds, processor_seconds
from placeto.cluster import Cluster
from placeto.measurement import Effort, Runnable, Runtime, RuntimeSettings
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


@dataclass(frozen=True)
class Alternation:
    """How placements are run.

    Attributes:
        rounds: runs of each placement.
        effort: of each run.
    """

    rounds: int
    effort: Effort


@contextmanager
def runtimes(cluster: Cluster) -> Iterator[dict[str, Runtime]]:
    """A runtime with each of the settings; those that nothing is run in are never started."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Runtime(cluster, settings))
            for name, settings in SETTINGS.items()
        }


def alternate(
    runtimes: Mapping[str, Runtime],
    problem: PlacementProblem,
    runnable: Runnable,
    rows: Sequence[dict[str, Any]],
    alternation: Alternation,
) -> Iterator[dict[str, Any]]:
    """Runs all placements once a round, in every other round from the last to the first.

    Args:
        runtimes: of the problem's cluster.
        problem: what is placed.
        runnable: the graph's GraphDef.
        rows: a placement each: `label`, `devices` (a digit a group), `runtime` (which one runs it),
            `runs` (those that were made, which are not made again) and `reason` (why it cannot be
            run). What is found is put into `runs` and `reason`.
        alternation: how often.

    Yields:
        A row after each run.
    """
    for number in range(alternation.rounds):
        for row in rows if number % 2 == 0 else reversed(rows):
            if row["reason"] or len(row["runs"]) > number:
                continue
            runtime = runtimes[row["runtime"]]
            run = _quiet(runtime, problem, runnable, digits(row["devices"]), alternation.effort)
            row["reason"] = run.pop("reason")
            if not row["reason"]:
                row["runs"].append(run)
            _say(problem, row)
            yield row


def contest(
    problem: PlacementProblem,
    runnable: Runnable,
    alternation: Alternation,
    kept: Path,
    enter: Callable[[Mapping[str, Runtime]], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Runs in turn what enters a contest; goes on where it was stopped.

    Args:
        problem: what is placed.
        runnable: the graph's GraphDef.
        alternation: how often.
        kept: a file for the rows, written after each run.
        enter: makes the rows, where that file is not there yet; see `alternate`.

    Returns:
        The rows.
    """
    with runtimes(problem.cluster) as started:
        rows: list[dict[str, Any]] = read_json(kept)["rows"] if kept.exists() else enter(started)
        write_json(kept, {"rows": rows})
        for _ in alternate(started, problem, runnable, rows, alternation):
            write_json(kept, {"rows": rows})
    return rows


def fastest(
    runtimes: Mapping[str, Runtime],
    problem: PlacementProblem,
    runnable: Runnable,
    rows: Sequence[dict[str, Any]],
    alternation: Alternation,
) -> dict[str, Any]:
    """The row whose placement is the fastest when each is run once; that run is not in it."""
    for _ in alternate(runtimes, problem, runnable, rows, replace(alternation, rounds=1)):
        pass
    best = min((row for row in rows if not row["reason"]), key=measured)
    return best | {"runs": []}


def row_of(label: str, devices: Ints, runtime: str = NOW, **more: Any) -> dict[str, Any]:
    """A placement that was not run yet; see `alternate`."""
    digits = "".join(map(str, np.asarray(devices).tolist()))
    return {
        "label": label,
        "runtime": runtime,
        **more,
        "devices": digits,
        "runs": [],
        "reason": "",
    }


def measured(row: dict[str, Any]) -> float:
    """Median seconds of all steps of a placement that ran."""
    return float(median(sample for run in row["runs"] for sample in run["samples"]))


def digits(text: str) -> Ints:
    """(num_groups,) devices, from a digit a group."""
    return np.array([int(digit) for digit in text])


def _quiet(
    runtime: Runtime,
    problem: PlacementProblem,
    runnable: Runnable,
    devices: Ints,
    effort: Effort,
) -> dict[str, Any]:
    """One run that others hardly disturb; `foreign` is how many cores others had meanwhile."""
    tries: list[dict[str, Any]] = []
    while len(tries) < TRIES:
        begin, before, own = monotonic(), busy_seconds(), _own_seconds(runtime)
        measurement = runtime.measure(problem, devices, runnable, effort)
        busy = busy_seconds() - before - (_own_seconds(runtime) - own)
        tries.append(
            {
                "samples": list(measurement.samples),
                "foreign": round(busy / (monotonic() - begin), 3),
                "reason": measurement.reason,
            }
        )
        if measurement.reason or tries[-1]["foreign"] <= FOREIGN:
            return tries[-1]
    return min(tries, key=lambda run: run["foreign"])


def _own_seconds(runtime: Runtime) -> float:
    return sum(processor_seconds(pid) for pid in (*runtime.process_ids.values(), None))


def _say(problem: PlacementProblem, row: dict[str, Any]) -> None:
    text = row["reason"] or f"{measured(row):.4g} s, others had {row['runs'][-1]['foreign']:.0%}"
    print(f"{problem.graph.name}: {row['label']}: {text}", file=sys.stderr, flush=True)
