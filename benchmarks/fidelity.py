"""How far the calibrated simulator can be believed: `python -m benchmarks.fidelity [--quick]`.

Placements of training steps on both workers of `local-2`, run in turn, and predicted by the
simulator, and as `benchmarks.transfers` says. It goes on where it was stopped. Writes
`results/fidelity.json`, `results/fidelity.md` and `docs/fidelity.png`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmarks import measuring
from benchmarks.measuring import NOW, SETTINGS, Case, Plan, Row, Study
from benchmarks.output import picture, picture_of, span, table_of
from benchmarks.splits import Split, different, splits
from benchmarks.transfers import cost_of, held_step_time
from placeto.measurement import Effort
from placeto.placers import NotApplicable, place
from placeto.simulation import simulate

PLACERS = ("expert", "metis", "heft", "etf", "m-sct", "annealing", "placeto-2019")
EVERY = 4  # so many-th of the splits is taken
CLOSE = 1.05
SUBSETS = 1000
SUBSET_SIZE = 10
FULL = Plan(
    {
        "inception_v3": "keras:InceptionV3?batch=4",
        "resnet50": "keras:ResNet50?batch=4",
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
    },
    dict.fromkeys(PLACERS, 5.0),
    ("--steps", "9", "--traces", "5", "--deadline", "600"),
    effort=Effort(warm_up=1, steps=4, deadline_seconds=300),
)
QUICK = Plan(
    {"rnnlm": "zoo:rnnlm?layers=2&batch=4&length=4&hidden=512&embedding=512&vocabulary=4000"},
    dict.fromkeys(PLACERS, 1.0),
    ("--steps", "7", "--traces", "5"),
    effort=Effort(warm_up=1, steps=3, deadline_seconds=120),
)


def measure(study: Study) -> dict[str, Any]:
    """Runs the placements, sets beside them what is predicted, and how well these agree."""
    cost, effort = cost_of(study.folder / "transfers.json"), study.plan.effort

    def predict(case: Case, row: Row) -> Row:
        devices = measuring.devices_of(row)
        schedule = simulate(case.problem, devices)
        sent = case.problem.graph.tensor_bytes[schedule.transfers.tensor]
        return {
            "measured": measuring.measured(row) if measuring.ran([row]) else None,
            "predicted": schedule.step_time,
            "held": held_step_time(case.problem, devices, cost),
            "transfers": len(sent),
            "bytes": int(sent.sum()),
        }

    graphs = study.graphs(enter, predict)
    for graph in graphs.values():
        own = {runtime: judged(graph["rows"], runtime) for runtime in SETTINGS}
        graph["figures"] = {
            runtime: {key: figures(rows, key) for key in ("predicted", "held")}
            for runtime, rows in own.items()
            if rows
        }
        graph["again"] = {runtime: again(rows) for runtime, rows in own.items() if rows}
    return {
        "cluster": study.cluster().source,
        "rounds": study.plan.rounds,
        "effort": {"warm_up": effort.warm_up, "steps": effort.steps},
        "transfers": asdict(cost),
        "graphs": graphs,
    }


def enter(plan: Plan, case: Case) -> list[Row]:
    """Rows of what is measured: single devices, splits, the placers' own, in each runtime."""
    fixed = splits(case.problem)
    chosen = [*fixed[:2], *fixed[2::EVERY]]
    for method, seconds in plan.searches.items():
        with suppress(NotApplicable):
            devices = place(case.problem, method, seconds).devices
            chosen.append(Split(method, "placer", devices.astype(np.int64)))
    return [
        measuring.row_of(split.label, split.devices, runtime, family=split.family)
        for split in different(chosen)
        for runtime in SETTINGS
    ]


def judged(rows: Sequence[Row], runtime: str) -> list[Row]:
    """Rows of a runtime that count: measured, and on more than one device."""
    own = [row for row in rows if row["runtime"] == runtime and row["measured"] is not None]
    return [row for row in own if len(set(row["devices"])) > 1]


def figures(rows: Sequence[Row], key: str) -> dict[str, Any]:
    """How well predictions, of a `key` of the rows, agree with measurements.

    `error` is the mean absolute percentage error as a fraction, `bias` the signed one; `best` the
    measured step time of what is predicted to be fastest over that of the measured fastest;
    `close`, the share of random subsets in which that is at most 1.05.
    """
    real, predicted = np.array([[row["measured"], row[key]] for row in rows]).T
    off = predicted / real - 1
    rng = np.random.default_rng(0)
    size = min(SUBSET_SIZE, len(rows))
    subsets = [rng.choice(len(rows), size, replace=False) for _ in range(SUBSETS)]
    close = [_ratio(real[some], predicted[some]) <= CLOSE for some in subsets]
    return {
        "placements": len(rows),
        "error": float(np.abs(off).mean()), "bias": float(off.mean()),
        "spearman": float(spearmanr(real, predicted).statistic),
        "best": _ratio(real, predicted), "close": float(np.mean(close)),
    }  # fmt: skip


def _ratio(real: Any, predicted: Any) -> float:
    return float(real[np.argmin(predicted)] / real.min())


def again(rows: Sequence[Row]) -> dict[str, float]:
    """The mean rank correlation between two rounds; and `most`, what can be expected of any.

    That is the root of the reliability of all rounds (Spearman 1904, 1910; Brown 1910).
    """
    rounds = np.array([[np.median(run["samples"]) for run in row["runs"]] for row in rows]).T
    count = len(rounds)
    between = float(np.mean([spearmanr(*pair).statistic for pair in combinations(rounds, 2)]))
    reliability = count * between / (1 + (count - 1) * between)
    return {"spearman": between, "most": max(reliability, 0.0) ** 0.5}


def markdown(graphs: dict[str, Any]) -> str:
    """The tables: a row a graph, for either prediction."""

    def rows(key: str) -> Iterator[dict[str, str]]:
        for (name, graph), runtime in product(graphs.items(), SETTINGS):
            if found := graph["figures"].get(runtime, {}).get(key):
                real = [row["measured"] for row in judged(graph["rows"], runtime)]
                yield {
                    "graph": f"`{name}`", "runtime": runtime,
                    "placements": str(found["placements"]), "measured, s": span(real, ".2f", 1.0),
                    "mean absolute error": f"{found['error']:.1%}",
                    "mean error": f"{found['bias']:+.1%}", "Spearman": f"{found['spearman']:.3f}",
                    "at most": f"{graph['again'][runtime]['most']:.2f}",
                    "simulator's best over the best": f"{found['best']:.3f}",
                    f"within 5% of the best of {SUBSET_SIZE}": f"{found['close']:.0%}",
                }  # fmt: skip

    held = "If a transfer also held the devices at both ends, as long as it takes processor time"
    predicted = table_of([*rows("predicted")])
    return f"{predicted}\n{held} there:\n\n{table_of([*rows('held')])}"


def draw(graphs: dict[str, Any], path: Path) -> None:
    """Draws either prediction over measured step times, a row each, a panel a graph."""
    titles = {"predicted": "simulated", "held": "simulated, ends held"}
    nrows, ncols = len(titles), len(graphs)
    with picture(path, (4 * ncols, 4 * nrows), 100, nrows=nrows, ncols=ncols) as (_, axes):
        for column, (name, graph) in zip(axes.T, graphs.items(), strict=True):
            rows = pd.DataFrame(graph["rows"]).dropna(subset="measured")
            rows = rows[rows["runtime"] == NOW]
            times = rows[["measured", *titles]]
            ends = 0.95 * times.min(axis=None), 1.05 * times.max(axis=None)
            for ax, key in zip(column, titles, strict=True):
                for family, own in rows.groupby("family", sort=False):
                    ax.scatter(own["measured"], own[key], s=14, label=family)
                ax.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
                ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="measured step time, s")
                ax.set_title(name, loc="left", fontsize=10)
        for ax, title in zip(axes[:, 0], titles.values(), strict=True):
            ax.set_ylabel(f"{title}, s")
        axes[0][-1].legend(fontsize=8)


if __name__ == "__main__":
    folder, measured_graphs = measuring.main("fidelity", (FULL, QUICK), measure, markdown)
    draw(measured_graphs, picture_of("fidelity", folder))
