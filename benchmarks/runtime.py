"""What makes a step run as simulated: `python -m benchmarks.runtime [--quick]`, half an hour.

One worker and what `auto` finds run in processes that are started anew for each round of each of
`RUNTIMES`. Goes on where it was stopped; writes `results/runtime.json`, `.md`, `runtime_short.md`.
"""

import sys
from itertools import product
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measuring import BEFORE, NOW, SETTINGS, Plan, Study, devices_of, main, row_of
from benchmarks.output import span, table
from placeto import PlacementProblem, place, simulate
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort, Runtime, RuntimeSettings, conduct
from placeto.simulation import control_edges, ordered_ops, starting_order
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json

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
        order = starting_order(problem, schedule)
        order = order[ordered_ops(problem.graph)[order]]
        turn = pd.Series(order).groupby(devices[problem.op_group][order]).cumcount() % LANES
        lanes = np.zeros((LANES, problem.graph.num_ops), dtype=bool)
        lanes[turn, order] = True
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
BATCHES = {"branches": 32, "towers": 64, "experts": 64, "stack": 64, "recurrent": 32,
           "attention": 32}  # fmt: skip
FULL = Plan(
    {name: f"benchmarks.models:{name}?batch={batch}" for name, batch in BATCHES.items()},
    {"auto": 10.0},
    ("--steps", "9", "--traces", "5"),
    rounds=5,
    effort=Effort(warm_up=3, steps=7),
)
TOWERS = "benchmarks.models:towers?batch=32&width=512&depth=2"
QUICK = Plan({"towers": TOWERS}, {"auto": 1.0}, rounds=1)
Graphs = dict[str, dict[str, Any]]


def measure(study: Study) -> dict[str, Any]:
    """Measures the rounds that are missing, all graphs in a runtime, then in the next."""
    kept = study.folder / "rounds.json"
    graphs: Graphs = read_json(kept) if kept.exists() else {}
    graphs |= {name: entered(study, name) for name in study.plan.sources if name not in graphs}
    for number in range(study.plan.rounds):
        for runtime in RUNTIMES if number % 2 == 0 else reversed(RUNTIMES):
            if len(rows_of(graphs, runtime)[-1]["rounds"]) == number:
                measure_all(study, graphs, runtime)
                write_json(kept, graphs)
    return {"graphs": graphs}


def entered(study: Study, name: str) -> dict[str, Any]:
    """Of a graph: placements, their simulated seconds, and a row for each in each runtime."""
    problem = study.case(name, "papers").problem
    found = place(problem, "auto", study.plan.searches["auto"])
    placements = {ONE: all_on(problem, 0), FOUND: found.devices}
    schedules = {label: simulate(problem, devices) for label, devices in placements.items()}
    return {
        "source": study.plan.sources[name],
        "transfers": len(schedules[FOUND].transfers),
        "simulated": {label: schedule.step_time for label, schedule in schedules.items()},
        "rows": [
            {"placement": label, "devices": row_of(label, devices)["devices"], "runtime": runtime}
            | {"rounds": [], "in_order": [], "send_wait": []}
            for (label, devices), runtime in product(placements.items(), RUNTIMES)
        ],
    }


def measure_all(study: Study, graphs: Graphs, runtime: str) -> None:
    """Adds a round to all rows of a runtime, in processes started for it."""
    kind, settings = RUNTIMES[runtime]
    with kind(study.cluster(), settings) as started:
        for name, graph in graphs.items():
            case = study.case(name, "papers")
            for row in rows_of({name: graph}, runtime):
                devices, told = devices_of(row), f"{name}: {row['placement']}, {runtime}"
                run = started.measure(case.problem, devices, case.runnable, case.effort, traces=1)
                if not run.feasible:
                    raise RuntimeError(f"{told}: {run.reason}")
                seen = conduct(case.problem, simulate(case.problem, devices), run)
                row["rounds"].append(run.step_time)
                row["in_order"].append(seen.in_order)
                row["send_wait"].append(seen.send_wait)
                print(f"{told}: {run.step_time:.4g} s", file=sys.stderr, flush=True)


def rows_of(graphs: Graphs, runtime: str) -> list[dict[str, Any]]:
    """The rows of a runtime, over all graphs."""
    return [row for graph in graphs.values() for row in graph["rows"] if row["runtime"] == runtime]


def rounds(graphs: Graphs) -> "pd.Series[Any]":
    """(graph, placement, runtime) -> (n,) seconds of each round."""
    return pd.Series({
        (name, row["placement"], row["runtime"]): np.array(row["rounds"])
        for name, graph in graphs.items()
        for row in graph["rows"]
    })  # fmt: skip


def over_one(graphs: Graphs) -> "pd.Series[Any]":
    """(graph, runtime) -> (n,) seconds of what was found over those of one worker."""
    return rounds(graphs)[:, FOUND] / rounds(graphs)[:, ONE]


def markdown(graphs: Graphs) -> str:
    """A row a graph, before and now; and a row a runtime, over all graphs."""
    medians, ratios = rounds(graphs).map(np.median), over_one(graphs)
    rows = []
    for name, graph in graphs.items():
        now, before = (medians[name, ONE, each] for each in (WITH_ALL, AS_BEFORE))
        simulated = graph["simulated"][FOUND] / graph["simulated"][ONE]
        one = [f"{before * 1e3:.0f}", f"{now * 1e3:.0f}", f"{now / before:.3f}"]
        rows.append([f"`{name}`", *one, str(graph["transfers"]), f"{simulated:.2f}"])
        for each in (ratios[name, AS_BEFORE], ratios[name, WITH_ALL]):
            rows[-1] += [f"{np.median(each):.2f}", span(each, ".2f", 1.0)]
    header = ["step", "one worker before, ms", "now, ms", "ratio", "transfers of `auto`"]
    header += ["over one worker, simulated", "measured before", "rounds", "measured now", "rounds"]
    settings = []
    for runtime in RUNTIMES:
        settings.append([runtime])
        for placement in (ONE, FOUND):
            over_all = medians[:, placement, runtime] / medians[:, placement, WITH_ALL]
            settings[-1] += [f"{geometric_mean(over_all):.3f}", span(over_all, ".2f", 1.0)]
        traced = [row for row in rows_of(graphs, runtime) if row["placement"] == FOUND]
        seen = [[wait for wait in row["send_wait"] if wait is not None] for row in traced]
        waits = [median(each) for each in seen if each]
        settings[-1].append(f"{min(min(row['in_order']) for row in traced):.1%}")
        settings[-1].append(span(waits, scale=1e6) if waits else "-")
    columns = ["settings", "one worker, over all", "least to most", "`auto`, over all"]
    columns += ["least to most", "pairs of ops in order, least", "a tensor waits, us"]
    return f"{table(header, rows)}\n{table(columns, settings)}"


def short(graphs: Graphs) -> str:
    """What is found over one worker, simulated and measured, a column a graph."""
    simulated = [graph["simulated"] for graph in graphs.values()]
    body = [["simulated", *(f"{each[FOUND] / each[ONE]:.2f}" for each in simulated)]]
    ratios = over_one(graphs)
    for label, runtime in (("measured", WITH_ALL), ("left to the runtime", AS_BEFORE)):
        body.append([label, *(f"{np.median(each):.2f}" for each in ratios[:, runtime])])
    return table(["over one worker", *(f"`{name}`" for name in graphs)], body)


if __name__ == "__main__":
    results, measured_graphs = main("runtime", (FULL, QUICK), measure, markdown)
    (results / "runtime_short.md").write_text(short(measured_graphs))
