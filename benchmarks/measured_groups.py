"""Finer groups, for real: `python -m benchmarks.measured_groups [--quick]`, half an hour.

What `auto` finds with groups `papers` and `auto`, the fastest by measurement of a few, is run in
turn with one worker. Goes on where it was stopped; what the results have is not searched again.
Writes `results/measured_groups.json` and `.md`.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import measuring
from benchmarks.measuring import SETTINGS, Case, Plan, Row, Study
from benchmarks.output import table
from placeto import PlacementProblem, simulate
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort
from placeto.support.files import read_json

GROUPS = ("papers", "auto")
SINGLE, LABEL = "all on 0", "groups `{}`"
FULL = Plan(
    {
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
        "nmt": "zoo:nmt?layers=2&length=10&hidden=768&batch=32",
        "cifar10": "zoo:enas_cnn?seed=188931&cells=6&filters=48&batch=32",
        "ptb": "zoo:enas_rnn?seed=275405&nodes=6&length=16&hidden=640&batch=64",
        "transformer": "zoo:transformer?layers=4&hidden=384&heads=8&length=32&batch=32&masked=4",
    },
    {"auto": 10.0},
    ("--steps", "9", "--traces", "5", "--deadline", "600"),
    rounds=3,
    effort=Effort(warm_up=2, steps=5, deadline_seconds=300),
)
QUICK = Plan({"rnnlm": "zoo:rnnlm?layers=1&batch=4&length=5&hidden=256"}, {"auto": 2.0})


def measure(study: Study) -> dict[str, Any]:
    """Runs the contests; adds the seconds `simulated`."""
    results = study.results / "measured_groups.json"
    before = read_json(results)["graphs"] if results.exists() else {}

    def predict(case: Case, row: Row) -> Row:
        return {"simulated": simulate(case.problem, measuring.devices_of(row)).step_time}

    return {"graphs": study.graphs(partial(enter, before), predict, "none")}


def enter(before: dict[str, Any], plan: Plan, case: Case) -> list[Row]:
    """Rows of the contenders, op by op: one worker, and what was found, if need be now."""
    name = case.problem.graph.name
    same = before.get(name, {}).get("source") == plan.sources[name]
    known = {row["label"]: row["devices"] for row in before[name]["rows"]} if same else {}
    problem = case.problem
    some_op = np.unique(problem.op_group, return_index=True)[1]  # of each group
    entered = [measuring.row_of(SINGLE, all_on(problem, 0))]
    for groups in GROUPS:
        label = LABEL.format(groups)
        if len(known.get(label, "")) == problem.num_groups:
            entered.append(measuring.row_of(label, []) | {"devices": known[label]})
        else:
            grouped = PlacementProblem(problem.graph, problem.cluster, groups)
            found = replace(case, problem=grouped).candidates("auto", plan.searches["auto"])
            group_of = grouped.op_group[some_op]
            rows = [measuring.row_of(label, devices[group_of]) for devices in found]
            entered.append(case.fastest(rows))
    return [{**row, "runtime": name, "runs": []} for row in entered for name in case.runtimes]


def markdown(graphs: dict[str, Any]) -> str:
    """The table: a row a graph and contender; a dash for what did not run in a runtime."""
    rows = []
    for name, graph in graphs.items():
        by_key = {(row["label"], row["runtime"]): row for row in measuring.ran(graph["rows"])}
        either = {label: row for (label, _), row in by_key.items()}
        for label, row in either.items():
            over_one = row["simulated"] / either[SINGLE]["simulated"]
            simulated = f"{row['simulated'] * 1e3:.0f}"
            rows.append([f"`{name}`", label, simulated, f"{over_one:.2f}"])
            for runtime in SETTINGS:
                cells = ("-", "-", "-")
                if own := by_key.get((label, runtime)):
                    ratio = measuring.measured(own) / measuring.measured(by_key[SINGLE, runtime])
                    cells = *measuring.milliseconds(own), f"{ratio:.2f}"
                rows[-1] += cells
    header = ["graph", "placement", "simulated, ms", "over one worker"]
    for runtime in SETTINGS:
        header += [f"measured {runtime}, ms", "rounds", "over one worker"]
    return table(header, rows)


if __name__ == "__main__":
    measuring.main("measured_groups", (FULL, QUICK), measure, markdown)
