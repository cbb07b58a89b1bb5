"""What makes a step run as simulated: `python -m benchmarks.runtime [--quick]`, half an hour.

Training steps are calibrated on the two workers of `local-2`, and `auto` places each in ten
seconds. One worker and that placement then run in turn, several rounds: with the settings of
`placeto.measurement.RuntimeSettings`; as it was before (the runtime's own order, memory that is
given back, a thread a core); with one of the settings taken away; and with orders that leave a part
of the ops free. It goes on where it was stopped, model by model. Writes `results/runtime.json` and
`.md`; with `--quick` both go into the folder.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from benchmarks.alternating import BEFORE, NOW, SETTINGS
from benchmarks.calibrated import cluster_file, load, prepare
from benchmarks.markdown import table
from placeto import PlacementProblem, load_cluster, place, simulate
from placeto.files import read_json, write_json
from placeto.graph import Ints
from placeto.initial import all_on
from placeto.measurement import Effort, Runtime, RuntimeSettings, conduct
from placeto.measurement.calibration.machine import machine
from placeto.simulation import control_edges, ordered_ops, starting_order

RESULTS = Path(__file__).parent / "results"
ONE, FOUND = "one worker", "`auto`"
WITH_ALL, AS_BEFORE = "all", "as before"
LONG_SECONDS = 20e-6
LANES = 4


class LongOpsInOrder(Runtime):
    """Only ops that take `LONG_SECONDS` are kept in order."""

    def control(self, problem: PlacementProblem, devices: Ints) -> Ints:
        """See `Runtime.control`."""
        seconds = problem.op_seconds[np.arange(problem.graph.num_ops), devices[problem.op_group]]
        ordered = ordered_ops(problem.graph) & (seconds >= LONG_SECONDS)
        return control_edges(problem, simulate(problem, devices), ordered)


class LanesInOrder(Runtime):
    """Each op follows not the one before it on its device, but that `LANES` before it."""

    def control(self, problem: PlacementProblem, devices: Ints) -> Ints:
        """See `Runtime.control`."""
        schedule = simulate(problem, devices)
        device, ordered = devices[problem.op_group], ordered_ops(problem.graph)
        lanes = np.zeros((LANES, problem.graph.num_ops), dtype=bool)
        count = [0] * problem.num_devices
        for op in starting_order(problem, schedule):
            if ordered[op]:
                lanes[count[device[op]] % LANES, op] = True
                count[device[op]] += 1
        return np.concatenate([control_edges(problem, schedule, lane) for lane in lanes])


RUNTIMES: dict[str, tuple[type[Runtime], RuntimeSettings]] = {
    WITH_ALL: (Runtime, SETTINGS[NOW]),
    AS_BEFORE: (Runtime, SETTINGS[BEFORE]),
    "without order": (Runtime, RuntimeSettings("none")),
    "without kept memory": (Runtime, RuntimeSettings(keeps_memory=False)),
    "without serving threads": (Runtime, RuntimeSettings(serving_threads=0)),
    "only ops from 20 us on in order": (LongOpsInOrder, RuntimeSettings()),
    "each op after the fourth before it": (LanesInOrder, RuntimeSettings()),
}


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        sources: name -> what is extracted.
        calibration: options of `placeto calibrate`.
        seconds: of each search.
        rounds: runs of each placement in each runtime.
        effort: of each run.
    """

    sources: dict[str, str]
    calibration: tuple[str, ...]
    seconds: float
    rounds: int
    effort: Effort


FULL = Plan(
    {
        name: f"benchmarks.models:{name}?batch={batch}"
        for name, batch in (
            ("branches", 32),
            ("towers", 64),
            ("experts", 64),
            ("stack", 64),
            ("recurrent", 32),
            ("attention", 32),
        )
    },
    ("--steps", "9", "--traces", "5"),
    seconds=10.0,
    rounds=3,
    effort=Effort(warm_up=3, steps=9),
)
QUICK = Plan(
    {"towers": "benchmarks.models:towers?batch=32&width=512&depth=2"},
    ("--steps", "5", "--traces", "3"),
    seconds=1.0,
    rounds=1,
    effort=Effort(warm_up=1, steps=3),
)


def run(plan: Plan, folder: Path, results: Path) -> None:
    """Measures what is missing and writes the tables."""
    calibrated = prepare(plan.sources, plan.calibration, folder)
    document: dict[str, Any] = {
        "command": "python -m benchmarks.runtime",
        "machine": machine(),
        "graphs": {},
    }
    cluster = load_cluster(cluster_file(calibrated))
    with ExitStack() as stack:
        runtimes = {
            name: stack.enter_context(kind(cluster, settings))
            for name, (kind, settings) in RUNTIMES.items()
        }
        for name, source in plan.sources.items():
            kept = folder / f"{name}.runtime.json"
            if not kept.exists():
                write_json(kept, {"source": source, **measured(plan, calibrated, name, runtimes)})
            document["graphs"][name] = read_json(kept)
    write_json(results, document)
    text = markdown(document["graphs"])
    results.with_suffix(".md").write_text(text)
    print(text, end="")


def measured(
    plan: Plan, calibrated: Path, name: str, runtimes: dict[str, Runtime]
) -> dict[str, Any]:
    """Of a graph: `transfers` and simulated seconds, and a row a placement and runtime.

    A row has the medians of its rounds in seconds (`rounds`), and of a traced step in the last of
    them the share of pairs of ops in order and the median seconds that a tensor waits.
    """
    problem, runnable = load(calibrated, name, "auto")
    placements = {ONE: all_on(problem, 0), FOUND: place(problem, "auto", plan.seconds).devices}
    schedules = {label: simulate(problem, devices) for label, devices in placements.items()}
    keys = [(label, runtime) for label in placements for runtime in runtimes]
    rows: dict[tuple[str, str], dict[str, Any]] = {key: {"rounds": []} for key in keys}
    for number in range(plan.rounds):
        for label, runtime in keys if number % 2 == 0 else reversed(keys):
            run = runtimes[runtime].measure(
                problem, placements[label], runnable, plan.effort, traces=1
            )
            if not run.feasible:
                raise RuntimeError(f"{name}, {label}, {runtime}: {run.reason}")
            seen = conduct(problem, schedules[label], run)
            row = rows[label, runtime]
            row["rounds"].append(run.step_time)
            row |= {"in_order": seen.in_order, "send_wait": seen.send_wait}
            print(f"{name}: {label}, {runtime}: {run.step_time:.4g} s", file=sys.stderr, flush=True)
    return {
        "transfers": len(schedules[FOUND].transfers),
        "simulated": {label: schedule.step_time for label, schedule in schedules.items()},
        "rows": [{"placement": key[0], "runtime": key[1], **row} for key, row in rows.items()],
    }


def seconds(graph: dict[str, Any], placement: str, runtime: str) -> float:
    """Median over the rounds."""
    rows = {(row["placement"], row["runtime"]): row for row in graph["rows"]}
    return float(median(rows[placement, runtime]["rounds"]))


def markdown(graphs: dict[str, Any]) -> str:
    """A row a graph, before and now; and a row a runtime, over all graphs."""
    rows = []
    for name, graph in graphs.items():
        one, simulated = seconds(graph, ONE, WITH_ALL), graph["simulated"]
        rows.append(
            [
                f"`{name}`",
                f"{seconds(graph, ONE, AS_BEFORE) * 1e3:.0f}",
                f"{one * 1e3:.0f}",
                f"{one / seconds(graph, ONE, AS_BEFORE):.3f}",
                str(graph["transfers"]),
                f"{simulated[FOUND] / simulated[ONE]:.2f}",
                f"{seconds(graph, FOUND, AS_BEFORE) / seconds(graph, ONE, AS_BEFORE):.2f}",
                f"{seconds(graph, FOUND, WITH_ALL) / one:.2f}",
            ]
        )
    header = [
        "step",
        "one worker before, ms",
        "now, ms",
        "ratio",
        "transfers of `auto`",
        "over one worker, simulated",
        "measured before",
        "measured now",
    ]
    return f"{table(header, rows)}\n{_settings(graphs)}"


def _settings(graphs: dict[str, Any]) -> str:
    rows = []
    for runtime in RUNTIMES:
        cells = [runtime]
        for placement in (ONE, FOUND):
            ratios = [
                seconds(graph, placement, runtime) / seconds(graph, placement, WITH_ALL)
                for graph in graphs.values()
            ]
            cells += [f"{geometric_mean(ratios):.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        traced = [
            row
            for graph in graphs.values()
            for row in graph["rows"]
            if (row["placement"], row["runtime"]) == (FOUND, runtime)
        ]
        waits = [row["send_wait"] * 1e6 for row in traced if row["send_wait"] is not None]
        cells += [
            f"{min(row['in_order'] for row in traced):.1%}",
            f"{min(waits):.0f} to {max(waits):.0f}" if waits else "-",
        ]
        rows.append(cells)
    header = [
        "settings",
        "one worker, over all",
        "least to most",
        "`auto`, over all",
        "least to most",
        "pairs of ops in order, least",
        "a tensor waits, us",
    ]
    return table(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the study; exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime")
    parser.add_argument("--quick", action="store_true", help="a small graph, two minutes")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    arguments = parser.parse_args(argv)
    folder = arguments.folder or Path("build/runtime-quick" if arguments.quick else "build/runtime")
    if arguments.quick:
        run(QUICK, folder, folder / "runtime.json")
    else:
        run(FULL, folder, RESULTS / "runtime.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
