"""Finer groups, for real: `python -m benchmarks.measured_groups [--quick]`, half an hour.

Training steps are calibrated on the two workers of `local-2`. The search `auto` places each with
groups `papers` and with groups `auto`, in the same seconds. The fastest few of each by simulation
are run once, and the fastest of these by measurement is what was found; where the results have what
was found it stays as it is. Both are then run in turn with one worker, several rounds, which alone
count, in the runtime as it is and as it was before it kept the simulated order, see
`benchmarks.alternating`. Beside the simulated step times stand those if transfers held the devices
at both ends, see `benchmarks.held`. It goes on where it was stopped.
Writes `results/measured_groups.json` and `.md`; with `--quick` both go into the folder.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.alternating import (
    BEFORE,
    NOW,
    Alternation,
    contest,
    digits,
    fastest,
    measured,
    row_of,
)
from benchmarks.calibrated import load, prepare
from benchmarks.held import Cost, cost_of, held_step_time
from benchmarks.markdown import table
from placeto import PlacementProblem, place, simulate
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort, Runnable, Runtime
from placeto.measurement.calibration.machine import machine
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json

RESULTS = Path(__file__).parent / "results"
GROUPS = ("papers", "auto")
SINGLE, LABEL = "all on 0", "groups `{}`"


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        sources: name -> what is extracted.
        alternation: of the contenders in the end.
        calibration: options of `placeto calibrate`.
        seconds: of each search.
        candidates: placements of each search that are run.
    """

    sources: dict[str, str]
    alternation: Alternation
    calibration: tuple[str, ...]
    seconds: float
    candidates: int


FULL = Plan(
    {
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
        "nmt": "zoo:nmt?layers=2&length=10&hidden=768&batch=32",
        "cifar10": "zoo:enas_cnn?seed=188931&cells=6&filters=48&batch=32",
        "ptb": "zoo:enas_rnn?seed=275405&nodes=6&length=16&hidden=640&batch=64",
        "transformer": "zoo:transformer?layers=4&hidden=384&heads=8&length=32&batch=32&masked=4",
    },
    Alternation(3, Effort(warm_up=2, steps=5, deadline_seconds=300)),
    ("--steps", "9", "--traces", "5", "--deadline", "600"),
    seconds=10.0,
    candidates=3,
)
QUICK = replace(
    FULL,
    sources={"rnnlm": "zoo:rnnlm?layers=1&batch=4&length=5&hidden=256"},
    alternation=Alternation(2, Effort(warm_up=1, steps=3)),
    calibration=("--steps", "5", "--traces", "3"),
    seconds=2.0,
)


def run(plan: Plan, folder: Path, results: Path) -> None:
    """Measures what is missing and writes the table."""
    calibrated = prepare(plan.sources, plan.calibration, folder)
    cost = cost_of(folder / "transfers.json")
    document: dict[str, Any] = {
        "command": "python -m benchmarks.measured_groups",
        "machine": machine(),
        "graphs": {},
    }
    for name, source in plan.sources.items():
        problem, runnable = load(calibrated, name, "none")
        entered = partial(enter, plan, problem, runnable, _found_before(results, name, source))
        kept = folder / f"{name}.groups.json"
        rows = contest(problem, runnable, plan.alternation, kept, entered)
        predicted = [row | predictions(problem, digits(row["devices"]), cost) for row in rows]
        document["graphs"][name] = {"source": source, "rows": predicted}
    write_json(results, document)
    text = markdown(document["graphs"])
    results.with_suffix(".md").write_text(text)
    print(text, end="")


def enter(
    plan: Plan,
    problem: PlacementProblem,
    runnable: Runnable,
    known: dict[str, str],
    runtimes: Mapping[str, Runtime],
) -> list[dict[str, Any]]:
    """Rows of the contenders, op by op: one worker, and what was found with either groups.

    Args:
        plan: how to search.
        problem: what is placed.
        runnable: the graph's GraphDef.
        known: label -> placement, a digit a group, of what need not be searched.
        runtimes: in which what was found is run.
    """
    entered = [row_of(SINGLE, all_on(problem, 0))]
    for label in map(LABEL.format, GROUPS):
        if len(known.get(label, "")) == problem.num_groups:
            entered.append(row_of(label, digits(known[label])))
        else:
            found = _searched(plan, problem, label)
            entered.append(fastest(runtimes, problem, runnable, found, plan.alternation))
    return [{**row, "runtime": name, "runs": []} for row in entered for name in runtimes]


def _found_before(results: Path, name: str, source: str) -> dict[str, str]:
    graph = read_json(results)["graphs"].get(name, {}) if results.exists() else {}
    rows = graph["rows"] if graph.get("source") == source else []
    return {row["label"]: row["devices"] for row in rows}


def _searched(plan: Plan, problem: PlacementProblem, label: str) -> list[dict[str, Any]]:
    """Rows of the fastest few that the search came by."""
    (groups,) = (groups for groups in GROUPS if LABEL.format(groups) == label)
    grouped = PlacementProblem(problem.graph, problem.cluster, groups)
    placement = place(grouped, "auto", plan.seconds)
    candidates = (placement.candidates or (placement.devices,))[: plan.candidates]
    some_op = np.unique(problem.op_group, return_index=True)[1]  # of each group
    group_of = grouped.op_group[some_op]
    return [row_of(label, devices[group_of]) for devices in candidates]


def predictions(problem: PlacementProblem, devices: Ints, cost: Cost) -> dict[str, float]:
    """Seconds by the simulator, and if transfers also held the devices at both ends."""
    simulated = float(simulate(problem, devices).step_time)
    return {"simulated": simulated, "held": held_step_time(problem, devices, cost)}


def markdown(graphs: dict[str, Any]) -> str:
    """The table: a row a graph and contender; a dash for what did not run in a runtime."""
    rows = []
    for name, graph in graphs.items():
        ran = {
            (row["label"], row["runtime"]): row
            for row in graph["rows"]
            if row["runs"] and not row["reason"]
        }
        for label in dict.fromkeys(label for label, _ in ran):
            cells: dict[str, list[str]] = {BEFORE: ["-"] * 3, NOW: ["-"] * 3}
            for runtime in cells:
                if (row := ran.get((label, runtime))) is not None:
                    rounds = [median(run["samples"]) for run in row["runs"]]
                    cells[runtime] = [
                        f"{measured(row) * 1e3:.0f}",
                        f"{min(rounds) * 1e3:.0f} to {max(rounds) * 1e3:.0f}",
                        f"{measured(row) / measured(ran[SINGLE, runtime]):.2f}",
                    ]
            either = next(row for key, row in ran.items() if key[0] == label)
            single = next(row for key, row in ran.items() if key[0] == SINGLE)
            rows.append(
                [
                    f"`{name}`",
                    label,
                    f"{either['simulated'] * 1e3:.0f}",
                    f"{either['held'] * 1e3:.0f}",
                    f"{either['simulated'] / single['simulated']:.2f}",
                    *cells[BEFORE],
                    *cells[NOW],
                ]
            )
    header = ["graph", "placement", "simulated, ms", "ends held, ms", "over one worker"]
    for runtime in (BEFORE, NOW):
        header += [f"measured {runtime}, ms", "rounds", "over one worker"]
    return table(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it; exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measured_groups")
    parser.add_argument("--quick", action="store_true", help="a small graph, a minute")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    arguments = parser.parse_args(argv)
    name = "groups-quick" if arguments.quick else "groups"
    folder = arguments.folder or Path("build") / name
    if arguments.quick:
        run(QUICK, folder, folder / "measured_groups.json")
    else:
        run(FULL, folder, RESULTS / "measured_groups.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
