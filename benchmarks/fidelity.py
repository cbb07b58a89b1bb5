"""How far the calibrated simulator can be believed: `python -m benchmarks.fidelity [--quick]`.

Placements of real training steps, run on the two workers of `local-2` and predicted by the
simulator after `placeto calibrate`. Op times and launch overhead come from steps with all ops on
one device, channels from steps that do nothing but send; every placement that is judged here is on
both devices. The two placements on a single device are shown, and not judged.

Each placement runs in the runtime as it is and as it was before it kept the simulated order, in
turn; see `benchmarks.measuring`.

A second prediction shows what the semantics leave out: what a transfer costs the processors at
its ends, see `benchmarks.transfers`.

It goes on where it was stopped. Writes `results/fidelity.json`, `results/fidelity.md` and
`docs/fidelity.png`; with `--quick` all of it goes into the folder.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measuring
from benchmarks.measuring import NOW, SETTINGS, Case, Plan, Row, Study
from benchmarks.output import picture, picture_of, span, table_of
from benchmarks.splits import Split, different, splits
from benchmarks.transfers import Cost, cost_of, held_step_time
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
    ("--steps", "9", "--traces", "5", "--deadline", "600"),
    dict.fromkeys(PLACERS, 5.0),
    rounds=2,
    effort=Effort(warm_up=1, steps=4, deadline_seconds=300),
)
QUICK = Plan(
    {"rnnlm": "zoo:rnnlm?layers=2&batch=4&length=4&hidden=512&embedding=512&vocabulary=4000"},
    ("--steps", "7", "--traces", "5"),
    dict.fromkeys(PLACERS, 1.0),
    rounds=2,
    effort=Effort(warm_up=1, steps=3, deadline_seconds=120),
)


def measure(study: Study) -> dict[str, Any]:
    """Runs the placements of each graph, and sets beside them what is predicted."""
    cost = cost_of(study.folder / "transfers.json")
    graphs = {name: measured_graph(study, name, cost) for name in study.plan.sources}
    effort = study.plan.effort
    return {
        "cluster": study.cluster().source,
        "rounds": study.plan.rounds,
        "effort": {"warm_up": effort.warm_up, "steps": effort.steps},
        "transfers": asdict(cost),
        "graphs": graphs,
    }


def measured_graph(study: Study, name: str, cost: Cost) -> dict[str, Any]:
    """The placements of a graph with their runs, and how well predictions agree with these.

    A row gets `measured` (None where it failed), `predicted` and `held`, in seconds; `transfers`,
    their number, and `bytes` in them.
    """
    case = study.case(name)
    rows = study.contest(name, case, enter)
    for row in rows:
        devices = measuring.devices_of(row)
        schedule = simulate(case.problem, devices)
        row |= {
            "measured": measuring.measured(row) if measuring.ran([row]) else None,
            "predicted": schedule.step_time,
            "held": held_step_time(case.problem, devices, cost),
            "transfers": len(schedule.transfers),
            "bytes": int(case.problem.graph.tensor_bytes[schedule.transfers.tensor].sum()),
        }
    kept = {runtime: found for runtime in SETTINGS if (found := judged(rows, runtime))}
    return {
        "source": study.plan.sources[name],
        "figures": {
            runtime: {key: figures(found, key) for key in ("predicted", "held")}
            for runtime, found in kept.items()
        },
        "again": {runtime: again(found) for runtime, found in kept.items()},
        "rows": rows,
    }


def enter(plan: Plan, case: Case) -> list[Row]:
    """Rows of what is measured: single devices, splits, the placers' own, in each runtime."""
    fixed = list(splits(case.problem))
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
    """How well predictions agree with measurements.

    Args:
        rows: with `measured` and a prediction.
        key: which prediction.

    Returns:
        `placements`; `error`, the mean absolute percentage error as a fraction; `bias`, the mean
        signed one; `spearman`, the rank correlation; `best`, the measured step time of the
        placement that is predicted to be fastest over that of the measured fastest; `close`, the
        share of random subsets in which that ratio is at most 1.05.
    """
    from scipy.stats import spearmanr

    real = np.array([row["measured"] for row in rows])
    predicted = np.array([row[key] for row in rows])
    off = predicted / real - 1
    rng = np.random.default_rng(0)
    size = min(SUBSET_SIZE, len(rows))
    subsets = [rng.choice(len(rows), size, replace=False) for _ in range(SUBSETS)]
    close = [_ratio(real[some], predicted[some]) <= CLOSE for some in subsets]
    return {
        "placements": len(rows),
        "error": float(np.abs(off).mean()),
        "bias": float(off.mean()),
        "spearman": float(spearmanr(real, predicted).statistic),
        "best": _ratio(real, predicted),
        "close": float(np.mean(close)),
    }


def again(rows: Sequence[Row]) -> dict[str, float]:
    """How well the measurements agree with themselves, in the order of the placements.

    Returns:
        `spearman`, the mean rank correlation between two rounds; and `most`, what a prediction
        without error could be expected to reach against the mean of all rounds: the root of their
        reliability (Spearman 1904, 1910; Brown 1910).
    """
    from scipy.stats import spearmanr

    rounds = np.array([[np.median(run["samples"]) for run in row["runs"]] for row in rows])
    count = rounds.shape[1]
    pairs = [rounds[:, pair].T for pair in combinations(range(count), 2)]
    between = float(np.mean([spearmanr(*pair).statistic for pair in pairs]))
    reliability = count * between / (1 + (count - 1) * between)
    return {"spearman": between, "most": max(reliability, 0.0) ** 0.5}


def markdown(graphs: dict[str, Any]) -> str:
    """The tables: a row a graph, for either prediction."""

    def rows(key: str) -> Iterator[dict[str, str]]:
        for name, runtime in product(graphs, SETTINGS):
            if runtime not in graphs[name]["figures"]:
                continue
            found = graphs[name]["figures"][runtime][key]
            real = [row["measured"] for row in judged(graphs[name]["rows"], runtime)]
            yield {
                "graph": f"`{name}`",
                "runtime": runtime,
                "placements": str(found["placements"]),
                "measured, s": span(real, ".2f", 1.0),
                "mean absolute error": f"{found['error']:.1%}",
                "mean error": f"{found['bias']:+.1%}",
                "Spearman": f"{found['spearman']:.3f}",
                "at most": f"{graphs[name]['again'][runtime]['most']:.2f}",
                "simulator's best over the best": f"{found['best']:.3f}",
                f"within 5% of the best of {SUBSET_SIZE}": f"{found['close']:.0%}",
            }

    return (
        table_of(list(rows("predicted")))
        + "\nIf a transfer also held the devices at both ends, as long as it takes processor time "
        + "there:\n\n"
        + table_of(list(rows("held")))
    )


def draw(graphs: dict[str, Any], path: Path) -> None:
    """Draws either prediction over measured step times, a row each, a panel a graph."""
    titles = {"predicted": "simulated", "held": "simulated, ends held"}
    nrows, ncols = len(titles), len(graphs)
    figsize = 4 * ncols, 4 * nrows
    with picture(path, 100, nrows=nrows, ncols=ncols, figsize=figsize) as (_, axes):
        for column, (name, graph) in enumerate(graphs.items()):
            now = [row for row in graph["rows"] if row["runtime"] == NOW]
            rows = [row for row in now if row["measured"] is not None]
            times = [row[key] for row in rows for key in ("measured", *titles)]
            ends = 0.95 * min(times), 1.05 * max(times)
            for ax, key in zip(axes[:, column], titles, strict=True):
                for family in dict.fromkeys(row["family"] for row in rows):
                    own = [row for row in rows if row["family"] == family]
                    points = [row["measured"] for row in own], [row[key] for row in own]
                    ax.scatter(*points, s=14, label=family)
                ax.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
                ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="measured step time, s")
                ax.set_title(name, loc="left", fontsize=10)
        for ax, title in zip(axes[:, 0], titles.values(), strict=True):
            ax.set_ylabel(f"{title}, s")
        axes[0][-1].legend(fontsize=8)


def _ratio(real: Any, predicted: Any) -> float:
    return float(real[np.argmin(predicted)] / real.min())


if __name__ == "__main__":
    folder, measured_graphs = measuring.main("fidelity", (FULL, QUICK), measure, markdown)
    draw(measured_graphs, picture_of("fidelity", folder))
