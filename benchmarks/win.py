"""A measured win: `python -m benchmarks.win [--quick]`, minutes; goes on where it was stopped.

The fastest by measurement of a few placements by simulation is run in turn with either worker and
the expert's placement: what was fastest once may have been lucky. Writes `results/win.json`, `.md`.
"""

from contextlib import suppress
from typing import Any

from benchmarks.measuring import Case, Plan, Row, main, measured, milliseconds, ran, row_of
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
    {"annealing": 30.0, "placeto-2019": 30.0, "etf": 5.0, "metis": 5.0, "scotch": 5.0},
    ("--steps", "15", "--traces", "7", "--deadline", "600"),
    rounds=5,
    effort=Effort(warm_up=2, steps=5, deadline_seconds=300),
)
QUICK = Plan(
    {"two_towers": "benchmarks.measured_training:two_towers?rows=128&width=512&layers=3"},
    {"annealing": 3.0},
)


def enter(plan: Plan, case: Case) -> list[Row]:
    """Rows of the contenders: either worker, the expert where there is one, what was found."""
    placed: dict[str, list[Row]] = {}
    for method, seconds in {EXPERT: 1.0, **plan.searches}.items():
        with suppress(NotApplicable):
            found = case.candidates(method, seconds)
            placed[method] = [row_of(method, devices) for devices in found]
    expert = placed.pop(EXPERT, [])
    best = case.fastest([row for rows in placed.values() for row in rows])
    single = [row_of(SINGLE.format(number), all_on(case.problem, number)) for number in (0, 1)]
    return [*single, *expert[:1], best | {"label": FOUND, "method": best["label"]}]


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
    main("win", (FULL, QUICK), lambda study: {"graphs": study.graphs(enter)}, markdown)
