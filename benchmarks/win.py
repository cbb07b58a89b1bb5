"""A measured win: `python -m benchmarks.win [--quick]`, minutes; goes on where it was stopped.

Placements are searched in the simulator after `placeto calibrate` on the two workers of `local-2`.
The fastest few by simulation are run once, and the fastest of these by measurement is what was
found. It is then run in turn with everything on either worker and with the expert's placement,
several rounds; only these runs count, as what was fastest once may have been lucky. Writes
`results/win.json` and `results/win.md`; with `--quick` both go into the folder.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.alternating import Alternation, contest, fastest, measured, row_of
from benchmarks.calibrated import load, prepare
from benchmarks.markdown import table
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort, Runnable, Runtime
from placeto.measurement.calibration.machine import machine
from placeto.placers import NotApplicable, place
from placeto.problem import PlacementProblem
from placeto.support.files import write_json

RESULTS = Path(__file__).parent / "results"
FOUND, EXPERT, SINGLE = "found", "expert", "all on {}"


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        sources: name -> what is extracted.
        alternation: of the contenders in the end.
        calibration: options of `placeto calibrate`.
        methods: search -> its seconds.
        candidates: placements of each search that are run.
    """

    sources: dict[str, str]
    alternation: Alternation
    calibration: tuple[str, ...]
    methods: dict[str, float]
    candidates: int


FULL = Plan(
    {
        "two_towers": "benchmarks.measured_training:two_towers?rows=512&width=1024&layers=3",
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
    },
    Alternation(5, Effort(warm_up=2, steps=5, deadline_seconds=300)),
    ("--steps", "15", "--traces", "7", "--deadline", "600"),
    {"annealing": 30.0, "placeto-2019": 30.0, "etf": 5.0, "metis": 5.0, "scotch": 5.0},
    candidates=3,
)
QUICK = replace(
    FULL,
    sources={"two_towers": "benchmarks.measured_training:two_towers?rows=128&width=512&layers=3"},
    alternation=Alternation(2, Effort(warm_up=1, steps=3)),
    calibration=("--steps", "5", "--traces", "3"),
    methods={"annealing": 3.0},
)


def run(plan: Plan, folder: Path, results: Path) -> None:
    """Measures what is missing and writes the table."""
    calibrated = prepare(plan.sources, plan.calibration, folder)
    document: dict[str, Any] = {
        "command": "python -m benchmarks.win",
        "machine": machine(),
        "graphs": {},
    }
    for name, source in plan.sources.items():
        problem, runnable = load(calibrated, name)
        entered = partial(enter, plan, problem, runnable)
        kept = folder / f"{name}.win.json"
        rows = contest(problem, runnable, plan.alternation, kept, entered)
        document["graphs"][name] = {"source": source, "rows": rows}
    write_json(results, document)
    text = markdown(document["graphs"])
    results.with_suffix(".md").write_text(text)
    print(text, end="")


def enter(
    plan: Plan,
    problem: PlacementProblem,
    runnable: Runnable,
    runtimes: Mapping[str, Runtime],
) -> list[dict[str, Any]]:
    """Rows of the contenders: either worker, the expert where there is one, what was found."""
    rows = [row_of(SINGLE.format(number), all_on(problem, number)) for number in (0, 1)]
    rows += _searched(problem, EXPERT, 1.0, 1)
    found = [
        row
        for method, seconds in plan.methods.items()
        for row in _searched(problem, method, seconds, plan.candidates)
    ]
    best = fastest(runtimes, problem, runnable, found, plan.alternation)
    return [*rows, best | {"label": FOUND, "method": best["label"]}]


def _searched(
    problem: PlacementProblem, method: str, seconds: float, count: int
) -> list[dict[str, Any]]:
    """Rows of the fastest few that a placer came by; none where it cannot place this."""
    try:
        placement = place(problem, method, seconds)
    except NotApplicable:
        return []
    return [row_of(method, each) for each in (placement.candidates or (placement.devices,))[:count]]


def markdown(graphs: dict[str, Any]) -> str:
    """The table: a row a graph and contender."""
    rows = []
    for name, graph in graphs.items():
        ran = [row for row in graph["rows"] if row["runs"] and not row["reason"]]
        best = min(measured(row) for row in ran if row["label"] != FOUND)
        for row in ran:
            rounds = [median(run["samples"]) for run in row["runs"]]
            rows.append(
                [
                    f"`{name}`",
                    row["label"] + (f" ({row['method']})" if "method" in row else ""),
                    f"{measured(row) * 1e3:.0f}",
                    f"{min(rounds) * 1e3:.0f} to {max(rounds) * 1e3:.0f}",
                    f"{measured(row) / best:.2f}",
                ]
            )
    header = ["graph", "placement", "step, ms", "rounds, ms", "ratio to the best other"]
    return table(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it; exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.win")
    parser.add_argument("--quick", action="store_true", help="a small graph, a minute")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    arguments = parser.parse_args(argv)
    folder = arguments.folder or Path("build/win-quick" if arguments.quick else "build/win")
    if arguments.quick:
        run(QUICK, folder, folder / "win.json")
    else:
        run(FULL, folder, RESULTS / "win.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
