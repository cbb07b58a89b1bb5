"""What makes a step run as simulated: `python -m benchmarks.runtime [--quick]`, half an hour.

Training steps are calibrated on the two workers of `local-2`, and `auto` places each in ten
seconds. One worker and that placement then run, all steps one after another, in processes that are
started anew for each round of each runtime: with the settings of
`placeto.measurement.RuntimeSettings`; as it was before (the runtime's own order, memory that is
given back, a thread a core); with one of the settings taken away; and with orders that leave a part
of the ops free. It goes on where it was stopped. Writes `results/runtime.json`,
`.md` and `runtime_short.md`; with `--quick` all go into the folder.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from benchmarks.alternating import BEFORE, NOW, SETTINGS, digits, row_of
from benchmarks.calibrated import cluster_file, load, prepare
from benchmarks.markdown import table
from placeto import PlacementProblem, load_cluster, place, simulate
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort, Runtime, RuntimeSettings, conduct
from placeto.measurement.calibration.machine import machine
from placeto.simulation import control_edges, ordered_ops, starting_order
from placeto.support.arrays import Floats, Ints
from placeto.support.files import read_json, write_json

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
        rounds: runs of each placement in each runtime, in processes of their own.
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
    rounds=5,
    effort=Effort(warm_up=3, steps=7),
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
    kept = folder / "rounds.json"
    graphs: dict[str, dict[str, Any]] = (
        read_json(kept)
        if kept.exists()
        else {name: entered(plan, calibrated, name) for name in plan.sources}
    )
    for number in range(plan.rounds):
        for runtime in RUNTIMES if number % 2 == 0 else reversed(RUNTIMES):
            if len(rows_of(graphs, runtime)[-1]["rounds"]) == number:
                measure_all(plan, calibrated, graphs, runtime)
                write_json(kept, graphs)
    document = {"command": "python -m benchmarks.runtime", "machine": machine(), "graphs": graphs}
    write_json(results, document)
    text = markdown(graphs)
    results.with_suffix(".md").write_text(text)
    results.with_name("runtime_short.md").write_text(short(graphs))
    print(text, end="")


def entered(plan: Plan, calibrated: Path, name: str) -> dict[str, Any]:
    """Of a graph: placements, their simulated seconds, and a row for each in each runtime.

    A row gets the median seconds of each round, and of its traced step the share of pairs of ops
    in order and the median seconds that a tensor waits.
    """
    problem, _ = load(calibrated, name, "papers")
    placements = {ONE: all_on(problem, 0), FOUND: place(problem, "auto", plan.seconds).devices}
    return {
        "source": plan.sources[name],
        "transfers": len(simulate(problem, placements[FOUND]).transfers),
        "simulated": {
            label: simulate(problem, devices).step_time for label, devices in placements.items()
        },
        "rows": [
            {"placement": label, "devices": row_of(label, devices)["devices"], "runtime": runtime}
            | {"rounds": [], "in_order": [], "send_wait": []}
            for label, devices in placements.items()
            for runtime in RUNTIMES
        ],
    }


def measure_all(
    plan: Plan, calibrated: Path, graphs: dict[str, dict[str, Any]], runtime: str
) -> None:
    """Adds a round to all rows of a runtime, in processes started for it."""
    kind, settings = RUNTIMES[runtime]
    with kind(load_cluster(cluster_file(calibrated)), settings) as started:
        for name, graph in graphs.items():
            problem, runnable = load(calibrated, name, "papers")
            for row in rows_of({name: graph}, runtime):
                devices = digits(row["devices"])
                run = started.measure(problem, devices, runnable, plan.effort, traces=1)
                if not run.feasible:
                    raise RuntimeError(f"{name}, {row['placement']}, {runtime}: {run.reason}")
                seen = conduct(problem, simulate(problem, devices), run)
                row["rounds"].append(run.step_time)
                row["in_order"].append(seen.in_order)
                row["send_wait"].append(seen.send_wait)
                text = f"{name}: {row['placement']}, {runtime}: {run.step_time:.4g} s"
                print(text, file=sys.stderr, flush=True)


def rows_of(graphs: dict[str, dict[str, Any]], runtime: str) -> list[dict[str, Any]]:
    """The rows of a runtime, over all graphs."""
    return [row for graph in graphs.values() for row in graph["rows"] if row["runtime"] == runtime]


def rounds(graph: dict[str, Any], placement: str, runtime: str) -> Floats:
    """(n,) seconds of each round."""
    (row,) = (row for row in rows_of({"": graph}, runtime) if row["placement"] == placement)
    return np.array(row["rounds"])


def markdown(graphs: dict[str, dict[str, Any]]) -> str:
    """A row a graph, before and now; and a row a runtime, over all graphs."""
    rows = []
    for name, graph in graphs.items():
        one, before = rounds(graph, ONE, WITH_ALL), rounds(graph, ONE, AS_BEFORE)
        simulated = graph["simulated"]
        cells = [
            f"`{name}`",
            f"{median(before) * 1e3:.0f}",
            f"{median(one) * 1e3:.0f}",
            f"{median(one) / median(before):.3f}",
            str(graph["transfers"]),
            f"{simulated[FOUND] / simulated[ONE]:.2f}",
        ]
        for runtime in (AS_BEFORE, WITH_ALL):
            ratios = rounds(graph, FOUND, runtime) / rounds(graph, ONE, runtime)
            cells += [f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        rows.append(cells)
    header = [
        "step",
        "one worker before, ms",
        "now, ms",
        "ratio",
        "transfers of `auto`",
        "over one worker, simulated",
        "measured before",
        "rounds",
        "measured now",
        "rounds",
    ]
    return f"{table(header, rows)}\n{_settings(graphs)}"


def short(graphs: dict[str, dict[str, Any]]) -> str:
    """What is found over one worker, simulated and measured, a column a graph."""
    simulated = [graph["simulated"] for graph in graphs.values()]
    body = [["simulated", *(f"{each[FOUND] / each[ONE]:.2f}" for each in simulated)]]
    for label, runtime in (("measured", WITH_ALL), ("left to the runtime", AS_BEFORE)):
        ratios = [
            median(rounds(graph, FOUND, runtime) / rounds(graph, ONE, runtime))
            for graph in graphs.values()
        ]
        body.append([label, *(f"{ratio:.2f}" for ratio in ratios)])
    return table(["over one worker", *(f"`{name}`" for name in graphs)], body)


def _settings(graphs: dict[str, dict[str, Any]]) -> str:
    rows = []
    for runtime in RUNTIMES:
        cells = [runtime]
        for placement in (ONE, FOUND):
            ratios = [
                median(rounds(graph, placement, runtime))
                / median(rounds(graph, placement, WITH_ALL))
                for graph in graphs.values()
            ]
            cells += [f"{geometric_mean(ratios):.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        traced = [row for row in rows_of(graphs, runtime) if row["placement"] == FOUND]
        waits = [
            1e6 * median(wait for wait in row["send_wait"] if wait is not None)
            for row in traced
            if any(wait is not None for wait in row["send_wait"])
        ]
        cells += [
            f"{min(min(row['in_order']) for row in traced):.1%}",
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
