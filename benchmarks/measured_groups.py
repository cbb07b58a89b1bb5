"""Finer groups, for real: `python -m benchmarks.measured_groups [--quick]`, half an hour.

Training steps are calibrated on the two workers of `local-2`. The search `auto` places each with
groups `papers` and with groups `auto`, in the same seconds. The fastest few of each by simulation
are run once, and the fastest of these by measurement is what was found; where the results have what
was found it stays as it is. Both are then run in turn with one worker, several rounds, which alone
count, in the runtime as it is and as it was before it kept the simulated order, see
`benchmarks.measuring`. Beside the simulated step times stand those if transfers held the devices
at both ends, see `benchmarks.transfers`. It goes on where it was stopped.
Writes `results/measured_groups.json` and `.md`; with `--quick` both go into the folder.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import measuring
from benchmarks.measuring import SETTINGS, Case, Plan, Row, Study
from benchmarks.output import table
from benchmarks.transfers import cost_of, held_step_time
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
    ("--steps", "9", "--traces", "5", "--deadline", "600"),
    {"auto": 10.0},
    rounds=3,
    effort=Effort(warm_up=2, steps=5, deadline_seconds=300),
)
QUICK = replace(
    FULL,
    sources={"rnnlm": "zoo:rnnlm?layers=1&batch=4&length=5&hidden=256"},
    calibration=("--steps", "5", "--traces", "3"),
    searches={"auto": 2.0},
    rounds=2,
    effort=Effort(warm_up=1, steps=3),
)


def measure(study: Study) -> dict[str, Any]:
    """Runs the contest of each graph, and adds the seconds that are predicted.

    `simulated` is what the simulator says, `held` what it would be if transfers also held the
    devices at both ends.
    """
    cost = cost_of(study.folder / "transfers.json")
    results = study.results / "measured_groups.json"
    before = read_json(results)["graphs"] if results.exists() else {}
    graphs = {}
    for name, source in study.plan.sources.items():
        case, known = study.case(name, "none"), before.get(name, {})
        rows = known["rows"] if known.get("source") == source else []
        placed = {row["label"]: row["devices"] for row in rows}
        rows = study.contest(name, case, partial(enter, placed))
        for row in rows:
            devices = measuring.devices_of(row)
            row["simulated"] = float(simulate(case.problem, devices).step_time)
            row["held"] = held_step_time(case.problem, devices, cost)
        graphs[name] = {"source": source, "rows": rows}
    return {"graphs": graphs}


def enter(known: dict[str, str], plan: Plan, case: Case) -> list[Row]:
    """Rows of the contenders, op by op: one worker, and what was found with either groups.

    Of what need not be searched, the placement is `known` by its label, a digit a group.
    """
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
            simulated = (f"{row[key] * 1e3:.0f}" for key in ("simulated", "held"))
            cells = [f"`{name}`", label, *simulated, f"{over_one:.2f}"]
            for runtime in SETTINGS:
                if own := by_key.get((label, runtime)):
                    ratio = measuring.measured(own) / measuring.measured(by_key[SINGLE, runtime])
                    cells += [*measuring.milliseconds(own), f"{ratio:.2f}"]
                else:
                    cells += ["-"] * 3
            rows.append(cells)
    header = ["graph", "placement", "simulated, ms", "ends held, ms", "over one worker"]
    for runtime in SETTINGS:
        header += [f"measured {runtime}, ms", "rounds", "over one worker"]
    return table(header, rows)


if __name__ == "__main__":
    measuring.main("measured_groups", (FULL, QUICK), measure, markdown)
