"""A measured win: `python -m benchmarks.win [--quick]`, minutes; goes on where it was stopped.

Placements are searched in the simulator after `placeto calibrate` on the two workers of `local-2`.
The fastest few by simulation are run once, and the fastest of these by measurement is what was
found. It is then run in turn with everything on either worker and with the expert's placement,
several rounds; only these runs count, as what was fastest once may have been lucky. Writes
`results/win.json` and `results/win.md`; with `--quick` both go into the folder.
"""

from dataclasses import replace
from typing import Any

from benchmarks.measuring import Case, Plan, Row, Study, main, measured, milliseconds, ran, row_of
from benchmarks.output import table
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort
from placeto.placers import NotApplicable

FOUND, EXPERT, SINGLE = "found", "expert", "all on {}"
FULL = Plan(
    {
        "two_towers": "benchmarks.measured_training:two_towers?rows=512&width=1024&layers=3",
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
    },
    ("--steps", "15", "--traces", "7", "--deadline", "600"),
    {"annealing": 30.0, "placeto-2019": 30.0, "etf": 5.0, "metis": 5.0, "scotch": 5.0},
    rounds=5,
    effort=Effort(warm_up=2, steps=5, deadline_seconds=300),
)
QUICK = replace(
    FULL,
    sources={"two_towers": "benchmarks.measured_training:two_towers?rows=128&width=512&layers=3"},
    calibration=("--steps", "5", "--traces", "3"),
    searches={"annealing": 3.0},
    rounds=2,
    effort=Effort(warm_up=1, steps=3),
)


def measure(study: Study) -> dict[str, Any]:
    """Runs the contest of each graph."""
    graphs = {}
    for name, source in study.plan.sources.items():
        rows = study.contest(name, study.case(name), enter)
        graphs[name] = {"source": source, "rows": rows}
    return {"graphs": graphs}


def enter(plan: Plan, case: Case) -> list[Row]:
    """Rows of the contenders: either worker, the expert where there is one, what was found."""
    rows = [row_of(SINGLE.format(number), all_on(case.problem, number)) for number in (0, 1)]
    searches = plan.searches.items()
    found = [row for method, seconds in searches for row in _searched(case, method, seconds)]
    best = case.fastest(found)
    found_row = best | {"label": FOUND, "method": best["label"]}
    return [*rows, *_searched(case, EXPERT, 1.0)[:1], found_row]


def _searched(case: Case, method: str, seconds: float) -> list[Row]:
    """Rows of the fastest few that a placer came by; none where it cannot place this."""
    try:
        return [row_of(method, devices) for devices in case.candidates(method, seconds)]
    except NotApplicable:
        return []


def markdown(graphs: dict[str, Any]) -> str:
    """The table: a row a graph and contender."""
    rows = []
    for name, graph in graphs.items():
        contenders = ran(graph["rows"])
        best = min(measured(row) for row in contenders if row["label"] != FOUND)
        for row in contenders:
            label = row["label"] + (f" ({row['method']})" if "method" in row else "")
            ratio = f"{measured(row) / best:.2f}"
            rows.append([f"`{name}`", label, *milliseconds(row), ratio])
    header = ["graph", "placement", "step, ms", "rounds, ms", "ratio to the best other"]
    return table(header, rows)


if __name__ == "__main__":
    main("win", (FULL, QUICK), measure, markdown)
