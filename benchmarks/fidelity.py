"""How far a simulator can be believed that a search has searched: `python -m benchmarks.fidelity`.

Training steps on the two workers of `local-2`: what searches find in version 1 of the simulator
(transfers cost their ends nothing) and in version 2, both calibrated, beside what nobody searched:
single devices, cuts, layers on devices drawn at random, heuristics. It is run step by step in
turn, several placements and both single devices at a time. It goes on where it was stopped;
`--quick` takes minutes. Writes `results/fidelity.json`, `results/fidelity.md`,
`results/fidelity_short.md` and `docs/fidelity.png`.
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmarks import measuring
from benchmarks.measuring import Case, Plan, Row, Study, row_of
from benchmarks.output import picture, picture_of, table, table_of
from benchmarks.splits import Split, different, splits
from placeto.cluster import Cluster
from placeto.heuristics.initial import all_on
from placeto.measurement import Effort
from placeto.placers import NotApplicable, place
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.arrays import Floats
from placeto.support.files import read_json, write_json

SEARCHERS = ("auto", "annealing", "placeto")
HEURISTICS = ("expert", "metis", "etf")
ONE, ONE_TOO = "worker 0", "worker 1"
SAME = 1e-9
VERSIONS = (1, 2)
# Of each family of splits, which.
TAKEN = {"layer cut": slice(2, 6, 3), "cut": slice(3, 4), "branches": slice(0, 1),
         "random layers": slice(1, 12, 4)}  # fmt: skip
# What this process has searched by: the first search of each reads compiled code.
_ready: set[tuple[str, int]] = set()
BATCHES = {"towers": 64, "experts": 64, "branches": 32, "recurrent": 32, "attention": 32,
           "recommender": 64, "pyramid": 32, "siamese": 32}  # fmt: skip


@dataclass(frozen=True)
class Searches(Plan):
    """What is measured, and for how many seconds each search searches."""

    seconds: tuple[float, ...] = (2.0, 10.0, 30.0)


FULL = Searches(
    {name: f"benchmarks.models:{name}?batch={batch}" for name, batch in BATCHES.items()},
    {},
    ("--steps", "9", "--traces", "5"),
    rounds=1,
    effort=Effort(warm_up=2, steps=9, patience_seconds=5.0),
    beside_single=True,
    together=6,
)
QUICK = Searches(
    {"towers": "benchmarks.models:towers?batch=32&width=512&depth=2"}, {}, seconds=(1.0,),
    beside_single=True,
)  # fmt: skip


def in_version(cluster: Cluster, version: int) -> Cluster:
    """A calibrated cluster, in version 1 without what transfers cost their ends.

    What a small tensor costs the one who receives it is then time on its way.
    """
    if version == 2:
        return cluster
    return replace(
        cluster,
        channels=tuple(
            replace(
                channel, send=(), receive=(),
                latency_seconds=channel.latency_seconds + channel.receive[0].seconds,
            )
            if channel.receive
            else channel
            for channel in cluster.channels
        ),
    )  # fmt: skip


def problem_of(study: Study, name: str, version: int) -> PlacementProblem:
    """A calibrated graph on the calibrated cluster, in a version of the simulator."""
    case = study.case(name, "auto")
    cluster = in_version(case.problem.cluster, version)
    return PlacementProblem(case.problem.graph, cluster, case.problem.op_group)


def measure(study: Study) -> dict[str, Any]:
    """Searches, runs what was found, and sets beside it what each version predicts."""
    plan = study.plan
    assert isinstance(plan, Searches)
    kept = study.folder / "searched.json"
    found: dict[str, str] = read_json(kept) if kept.exists() else {}
    jobs = [
        (study, *job)
        for job in product(plan.sources, SEARCHERS, plan.seconds, VERSIONS)
        if _key(*job) not in found
    ]
    os.environ["NUMBA_NUM_THREADS"] = "1"  # of the processes; a search has a core
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for (_, *job), digits in zip(jobs, pool.map(_search, jobs), strict=True):
            found[_key(*job)] = digits
            write_json(kept, found)
            print(f"searched: {_key(*job)}", file=sys.stderr, flush=True)

    def enter(_: Plan, case: Case) -> list[Row]:
        name = case.problem.graph.name
        rows = [row_of(label, all_on(case.problem, device), family="single device")
                for device, label in enumerate((ONE, ONE_TOO))]  # fmt: skip
        for version, method, seconds in product(VERSIONS, SEARCHERS, plan.seconds):
            digits = found[_key(name, method, seconds, version)]
            label = f"{method}, {seconds:g} s, version {version}"
            family = f"searched in version {version}"
            rows.append(row_of(label, np.array([int(each) for each in digits]), family=family))
        return rows + [row_of(each.label, each.devices, family=each.family)
                       for each in not_searched(problem_of(study, name, 2))]  # fmt: skip

    def predict(case: Case, row: Row) -> Row:
        devices = measuring.devices_of(row)
        schedules = {
            version: simulate(problem_of(study, case.problem.graph.name, version), devices)
            for version in VERSIONS
        }
        predicted = {f"version {number}": each.step_time for number, each in schedules.items()}
        return predicted | {"transfers": len(schedules[2].transfers)}

    graphs = study.graphs(enter, predict, "auto")
    return {
        "cluster": study.cluster().source,
        "effort": {"rounds": plan.rounds, "steps": plan.effort.steps},
        "graphs": graphs,
        "figures": {f"version {version}": figures(graphs, version) for version in VERSIONS},
    }


def _key(name: str, method: str, seconds: float, version: int) -> str:
    return f"{name}, {method}, {seconds:g} s, version {version}"


def _search(job: tuple[Study, str, str, float, int]) -> str:
    study, name, method, seconds, version = job
    problem = problem_of(study, name, version)
    if (method, version) not in _ready:
        place(problem, method, 0.5)
        _ready.add((method, version))
    devices = place(problem, method, seconds).devices
    return "".join(map(str, devices.tolist()))


def not_searched(problem: PlacementProblem) -> list[Split]:
    """Placements by hand, by chance and by heuristics."""
    every = splits(problem)
    chosen = []
    for family, taken in TAKEN.items():
        chosen += [split for split in every if split.family == family][taken]
    for method in HEURISTICS:
        with suppress(NotApplicable):
            devices = place(problem, method, 1.0).devices
            chosen.append(Split(method, "heuristic", devices.astype(np.int64)))
    return [split for split in different(chosen) if len(set(split.devices.tolist())) > 1]


def ran(graph: dict[str, Any]) -> pd.DataFrame:
    """Placements that ran, predicted and measured step times over those of one worker.

    That is the mean of both, which are alike by calibration. Measured is the median, over all turns
    of a step of each, of the ratio within the turn. `single` is that of the better worker,
    `seconds` what one worker takes; `half` and `other half` are of every other turn.
    """
    rows = pd.DataFrame([row for row in graph["rows"] if row["runs"]])
    single = rows["family"] == "single device"
    found = rows[["label", "family", "transfers"]].copy()
    for version in VERSIONS:
        key = f"version {version}"
        found[key] = rows[key] / rows.loc[single, key].mean()
    ratios, workers, seconds = [], [], []
    for runs in rows["runs"]:
        own = np.concatenate([run["samples"] for run in runs])
        beside = np.concatenate([run["beside"] for run in runs], axis=1)
        one = beside.mean(axis=0)
        ratios.append(own / one)
        workers.append(np.median(beside / one, axis=1))
        seconds.append(np.median(one))
    found["measured"] = [float(np.median(each)) for each in ratios]
    for half, key in enumerate(("half", "other half")):
        found[key] = [float(np.median(each[half::2])) for each in ratios]
    found["single"] = float(np.median(workers, axis=0).min())
    found["seconds"] = float(np.median(seconds))
    return found


def figures(graphs: dict[str, Any], version: int) -> dict[str, Any]:
    """What there is to say of a version of the simulator, over all graphs.

    `error` is the mean absolute error of step times over one worker's, `worst` the largest, of what
    searches found in this version, and of what nobody searched. `false_wins` counts what was
    searched in it and predicted to be faster than the better worker (which a search may find, too)
    and was not; `missed` what was not searched, and wins, and was predicted to lose. `regret` is,
    for each graph, the measured step time of what this version predicts to be fastest, of all
    placements, over the fastest, less 1; `apart` the same with the fastest chosen by every other
    turn and judged by the rest, in the mean: the fastest of many is partly the luckiest. `spearman`
    is the mean rank correlation over graphs, and `most` what noise allows.
    """
    key, searched, others = f"version {version}", [], []
    regret, luckless, rank, most = [], [], [], []
    for graph in graphs.values():
        rows = ran(graph)
        alone = rows["family"] == "single device"
        rows["wins"] = rows[key] < rows.loc[alone, key].min() * (1 - SAME)
        apart = rows[~alone]
        own = apart[apart["family"] == f"searched in version {version}"]
        searched.append(own)
        others.append(apart[~apart["family"].str.startswith("searched")])
        # A version is asked of what was found in it, and of what nobody searched.
        asked = rows[~rows["family"].str.startswith("searched") | rows.index.isin(own.index)]
        best = asked.loc[asked[key].idxmin()]
        regret.append(float(best["measured"] / rows["measured"].min() - 1))
        luckless.append(np.mean([
            best[judge] / rows.loc[rows[choose].idxmin(), judge] - 1
            for choose, judge in (("half", "other half"), ("other half", "half"))
        ]))  # fmt: skip
        rank.append(float(spearmanr(apart[key], apart["measured"]).statistic))
        between = max(float(spearmanr(apart["half"], apart["other half"]).statistic), 0.0)
        most.append(float((2 * between / (1 + between)) ** 0.5))
    found, rest = pd.concat(searched), pd.concat(others)
    off, off_rest = (_off(each[key], each["measured"]) for each in (found, rest))
    wins = found[found["wins"]]
    missed = rest[(rest["measured"] < rest["single"]) & ~rest["wins"]]
    return {
        "searched": len(found), "error": float(np.abs(off).mean()), "bias": float(off.mean()),
        "worst": float(np.abs(off).max()), "above": int((np.abs(off) > 0.2).sum()),
        "others": len(rest), "error_others": float(np.abs(off_rest).mean()),
        "wins": len(wins), "false_wins": int((wins["measured"] >= wins["single"]).sum()),
        "real_wins": int((rest["measured"] < rest["single"]).sum()), "missed": len(missed),
        "regret": regret, "apart": luckless,
        "spearman": float(np.mean(rank)), "most": float(np.mean(most)),
    }  # fmt: skip


def _off(predicted: Any, real: Any) -> Floats:
    return np.asarray(predicted, dtype=float) / np.asarray(real, dtype=float) - 1


def markdown(graphs: dict[str, Any]) -> str:
    """A row a version; and a row a graph, the best that was found in either."""
    rows = []
    for version in VERSIONS:
        each = figures(graphs, version)
        rows.append({
            "simulator": f"version {version}", "placements searched in it": str(each["searched"]),
            "mean absolute error": f"{each['error']:.1%}", "mean error": f"{each['bias']:+.1%}",
            "largest": f"{each['worst']:.0%}", "above 20%": str(each["above"]),
            "error, not searched": f"{each['error_others']:.1%}",
            "false wins": f"{each['false_wins']} of {each['wins']}",
            "wins missed": f"{each['missed']} of {each['real_wins']}",
            "regret, mean": f"{np.mean(each['regret']):.1%}",
            "judged apart": f"{np.mean(each['apart']):.1%}",
            "largest regret": f"{max(each['regret']):.1%}",
            "Spearman": f"{each['spearman']:.2f}", "at most": f"{each['most']:.2f}",
        })  # fmt: skip
    steps = []
    for name, graph in graphs.items():
        found = ran(graph)
        one, single = found.iloc[0][["seconds", "single"]]
        cells = [f"`{name}`", f"{one * 1e3:.0f}", f"{single:.2f}"]
        for version in VERSIONS:
            own = found[found["family"] == f"searched in version {version}"]
            best = own.loc[own[f"version {version}"].idxmin()]
            cells += [f"{best[f'version {version}']:.2f}", f"{best['measured']:.2f}"]
        steps.append([*cells, f"{found['measured'].min():.2f}"])
    header = ["step", "one worker, ms", "better worker", "version 1 finds", "measured"]
    header += ["version 2 finds", "measured", "best of all"]
    return f"{table_of(rows)}\n{table(header, steps)}"


def short(graphs: dict[str, Any]) -> str:
    """Of each version: the error of what was searched in it, its false wins, its regret."""
    rows = []
    for version in VERSIONS:
        each = figures(graphs, version)
        rows.append({
            "what searches find in": f"version {version}",
            "mean absolute error": f"{each['error']:.0%}",
            "false wins": f"{each['false_wins']} of {each['wins']}",
            "regret": f"{np.mean(each['regret']):.0%}",
        })  # fmt: skip
    return table_of(rows)


def draw(graphs: dict[str, Any], path: Path) -> None:
    """Draws predicted over measured step times, a dot a placement, a panel a version."""
    every = pd.concat([ran(graph) for graph in graphs.values()])
    every = every[every["family"] != "single device"]
    searched = every["family"].str.startswith("searched")
    times = every[["measured", *(f"version {version}" for version in VERSIONS)]]
    ends = 0.9 * times.min(axis=None), 1.1 * times.max(axis=None)
    with picture(path, (11, 5.5), 100, ncols=2, sharey=True) as (_, axes):
        for ax, version in zip(axes.flat, VERSIONS, strict=True):
            own = every["family"] == f"searched in version {version}"
            for some, color, label in ((~searched, "0.6", "not searched"), (own, "C0", "searched")):
                shown = every[some]
                ax.scatter(shown["measured"], shown[f"version {version}"], s=16, c=color,
                           label=label)  # fmt: skip
            ax.plot(ends, ends, color="0.4", linewidth=1, zorder=0)
            ax.axhline(1, color="0.8", linewidth=1, zorder=0)
            ax.axvline(1, color="0.8", linewidth=1, zorder=0)
            ax.fill_between([1, ends[1]], ends[0], 1, color="C3", alpha=0.08, linewidth=0)
            ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
            ax.set(xlabel="measured, over one worker")
            ax.set_title(f"simulated in version {version}", loc="left", fontsize=11)
            ax.text(ends[1] / 1.05, ends[0] * 1.05, "false wins", color="C3", ha="right")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter("{x:g}")
                axis.set_tick_params(which="both", labelsize=8)
        axes[0][0].set_ylabel("simulated, over one worker")
        axes[0][0].legend(fontsize=9, loc="upper left")


if __name__ == "__main__":
    folder, measured_graphs = measuring.main("fidelity", (FULL, QUICK), measure, markdown)
    (folder / "fidelity_short.md").write_text(short(measured_graphs))
    draw(measured_graphs, picture_of("fidelity", folder))
