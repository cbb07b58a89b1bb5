"""Finer groups, for real: `python -m benchmarks.measured_groups [--quick]`, half an hour.

Training steps are calibrated on the two workers of `local-2`. The search `auto` places each with
groups `auto` and with groups `fine`, in the same seconds. The fastest few of each by simulation are
run once, and the fastest of these by measurement is what was found. Both are then run in turn with
one worker, several rounds, which alone count. Beside the simulated step times stand those if
transfers held the devices at both ends, see `benchmarks.held`. It goes on where it was stopped.
Writes `results/measured_groups.json` and `.md`; with `--quick` both go into the folder.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.alternating import Alternation, contest, digits, fastest, measured, row_of
from benchmarks.calibrated import load, prepare
from benchmarks.held import Cost, cost_of, held_step_time
from benchmarks.markdown import table
from placeto import PlacementProblem, place, simulate
from placeto.files import write_json
from placeto.graph import Ints
from placeto.initial import all_on
from placeto.measurement import Effort, Runnable, Runtime
from placeto.measurement.calibration.machine import machine

RESULTS = Path(__file__).parent / "results"
GROUPS = ("auto", "fine")
SINGLE = "all on 0"


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
    Alternation(5, Effort(warm_up=2, steps=5, deadline_seconds=300)),
    ("--steps", "15", "--traces", "7", "--deadline", "600"),
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
        entered = partial(enter, plan, problem, runnable)
        kept = folder / f"{name}.groups.json"
        rows = contest(problem, runnable, plan.alternation, kept, entered)
        predicted = [row | predictions(problem, digits(row["devices"]), cost) for row in rows]
        document["graphs"][name] = {"source": source, "rows": predicted}
    write_json(results, document)
    text = markdown(document["graphs"])
    results.with_suffix(".md").write_text(text)
    print(text, end="")


def enter(
    plan: Plan, problem: PlacementProblem, runnable: Runnable, runtime: Runtime
) -> list[dict[str, Any]]:
    """Rows of the contenders, op by op: one worker, and what was found with either groups."""
    rows = [row_of(SINGLE, all_on(problem, 0))]
    for groups in GROUPS:
        found = _searched(plan, problem, groups)
        rows.append(fastest(runtime, problem, runnable, found, plan.alternation))
    return rows


def _searched(plan: Plan, problem: PlacementProblem, groups: str) -> list[dict[str, Any]]:
    """Rows of the fastest few that the search came by."""
    grouped = PlacementProblem(problem.graph, problem.cluster, groups)
    placement = place(grouped, "auto", plan.seconds)
    candidates = (placement.candidates or (placement.devices,))[: plan.candidates]
    some_op = np.unique(problem.op_group, return_index=True)[1]  # of each group
    group_of = grouped.op_group[some_op]
    return [row_of(f"groups `{groups}`", devices[group_of]) for devices in candidates]


def predictions(problem: PlacementProblem, devices: Ints, cost: Cost) -> dict[str, float]:
    """Seconds by the simulator, and if transfers also held the devices at both ends."""
    simulated = float(simulate(problem, devices).step_time)
    return {"simulated": simulated, "held": held_step_time(problem, devices, cost)}


def markdown(graphs: dict[str, Any]) -> str:
    """The table: a row a graph and contender."""
    rows = []
    for name, graph in graphs.items():
        ran = [row for row in graph["rows"] if row["runs"] and not row["reason"]]
        coarse = next(row for row in ran if row["label"] == f"groups `{GROUPS[0]}`")
        for row in ran:
            rounds = [median(run["samples"]) for run in row["runs"]]
            rows.append(
                [
                    f"`{name}`",
                    row["label"],
                    f"{row['simulated'] * 1e3:.0f}",
                    f"{row['held'] * 1e3:.0f}",
                    f"{measured(row) * 1e3:.0f}",
                    f"{min(rounds) * 1e3:.0f} to {max(rounds) * 1e3:.0f}",
                    f"{row['simulated'] / coarse['simulated']:.2f}",
                    f"{measured(row) / measured(coarse):.2f}",
                ]
            )
    header = ["graph", "placement", "simulated, ms", "ends held, ms", "measured, ms", "rounds, ms"]
    return table([*header, "simulated, ratio", "measured, ratio"], rows)


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
