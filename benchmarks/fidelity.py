"""How far the calibrated simulator can be believed: `python -m benchmarks.fidelity [--quick]`.

Placements of real training steps, run on the two workers of `local-2` and predicted by the
simulator after `placeto calibrate`. Op times and launch overhead come from steps with all ops on
one device, channels from steps that do nothing but send; every placement that is judged here is on
both devices. The two placements on a single device are shown, and not judged.

Each placement runs in the runtime as it is and as it was before it kept the simulated order, in
turn; see `benchmarks.alternating`.

A second prediction shows what the semantics leave out: what a transfer costs the processors at
its ends, see `benchmarks.held`.

Everything is kept in a folder and goes on where it was stopped: extracted graphs, calibration,
placements, and each run. Writes `results/fidelity.json`, `results/fidelity.md` and
`docs/fidelity.png`; with `--quick` all of it goes into the folder.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alternating import (
    BEFORE,
    NOW,
    SETTINGS,
    Alternation,
    alternate,
    digits,
    measured,
    row_of,
    runtimes,
)
from benchmarks.calibrated import cluster_file, load, prepare
from benchmarks.held import Cost, cost_of, held_step_time
from benchmarks.markdown import table
from benchmarks.splits import Split, splits
from placeto import load_cluster
from placeto.measurement import Effort
from placeto.measurement.calibration.machine import machine
from placeto.placers import NotApplicable, place
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json

HERE = Path(__file__).parent
PLACERS = ("expert", "metis", "heft", "etf", "m-sct", "annealing", "placeto-2019")
CLOSE = 1.05
SUBSETS = 1000
SUBSET_SIZE = 10


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        sources: name -> what is extracted.
        alternation: of the placements of a graph.
        calibration: options of `placeto calibrate`.
        budget_seconds: of each placer.
        every: only each so many-th of the splits is taken.
    """

    sources: dict[str, str]
    alternation: Alternation
    calibration: tuple[str, ...]
    budget_seconds: float
    every: int = 1


FULL = Plan(
    {
        "inception_v3": "keras:InceptionV3?batch=4",
        "resnet50": "keras:ResNet50?batch=4",
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
    },
    Alternation(2, Effort(warm_up=1, steps=4, deadline_seconds=300)),
    ("--steps", "9", "--traces", "5", "--deadline", "600"),
    budget_seconds=5,
    every=4,
)
QUICK = Plan(
    {"rnnlm": "zoo:rnnlm?layers=2&batch=4&length=4&hidden=512&embedding=512&vocabulary=4000"},
    Alternation(2, Effort(warm_up=1, steps=3, deadline_seconds=120)),
    ("--steps", "7", "--traces", "5"),
    budget_seconds=1,
    every=4,
)


def run(plan: Plan, folder: Path, results: Path, picture: Path) -> None:
    """Measures what is missing and writes the report."""
    calibrated = prepare(plan.sources, plan.calibration, folder)
    cost = cost_of(folder / "transfers.json")
    document = {
        "command": "python -m benchmarks.fidelity",
        "machine": machine(),
        "cluster": load_cluster(cluster_file(calibrated)).source,
        "rounds": plan.alternation.rounds,
        "effort": {key: getattr(plan.alternation.effort, key) for key in ("warm_up", "steps")},
        "transfers": asdict(cost),
        "graphs": {},
    }
    for name, source in plan.sources.items():
        rows = measured_rows(plan, calibrated, name, folder / f"{name}.rows.json")
        rows = with_predictions(load(calibrated, name)[0], rows, cost)
        kept = {runtime: found for runtime in SETTINGS if (found := judged(rows, runtime))}
        document["graphs"][name] = {
            "source": source,
            "figures": {
                runtime: {key: figures(found, key) for key in ("predicted", "held")}
                for runtime, found in kept.items()
            },
            "again": {runtime: again(found) for runtime, found in kept.items()},
            "rows": rows,
        }
        write_json(results, document)
        results.with_suffix(".md").write_text(markdown(document["graphs"]))
        draw(document["graphs"], picture)
    print(results.with_suffix(".md").read_text(), end="")


def measured_rows(plan: Plan, calibrated: Path, name: str, kept: Path) -> list[dict[str, Any]]:
    """The placements of a graph with their runs; those that `kept` has are not made again."""
    problem, runnable = load(calibrated, name)
    if kept.exists():
        rows = read_json(kept)["rows"]
    else:
        rows = [
            row_of(split.label, split.devices, runtime, family=split.family)
            for split in placements(plan, problem)
            for runtime in SETTINGS
        ]
        write_json(kept, {"rows": rows})
    with runtimes(problem.cluster) as started:
        for _ in alternate(started, problem, runnable, rows, plan.alternation):
            write_json(kept, {"rows": rows})
    return list(rows)


def placements(plan: Plan, problem: PlacementProblem) -> Iterator[Split]:
    """What is measured, no placement twice: single devices, splits, the placers' own."""
    fixed = list(splits(problem))
    seen = set()
    for split in (*fixed[:2], *fixed[2 :: plan.every], *_placers_own(plan, problem)):
        if (key := split.devices.tobytes()) not in seen:
            seen.add(key)
            yield split


def _placers_own(plan: Plan, problem: PlacementProblem) -> Iterator[Split]:
    for method in PLACERS:
        try:
            placement = place(problem, method, plan.budget_seconds)
        except NotApplicable:
            continue
        yield Split(method, "placer", placement.devices.astype(np.int64))


def with_predictions(
    problem: PlacementProblem, rows: Sequence[dict[str, Any]], cost: Cost
) -> list[dict[str, Any]]:
    """Rows with what was measured and what is predicted.

    Returns:
        `measured` (None where it failed), `predicted` and `held`, in seconds; `transfers`, their
        number, and `bytes` in them.
    """

    def predictions(devices: Ints) -> dict[str, Any]:
        schedule = simulate(problem, devices)
        return {
            "predicted": schedule.step_time,
            "held": held_step_time(problem, devices, cost),
            "transfers": len(schedule.transfers),
            "bytes": int(problem.graph.tensor_bytes[schedule.transfers.tensor].sum()),
        }

    return [
        row
        | {"measured": measured(row) if row["runs"] and not row["reason"] else None}
        | predictions(digits(row["devices"]))
        for row in rows
    ]


def judged(rows: Sequence[dict[str, Any]], runtime: str) -> list[dict[str, Any]]:
    """Rows of a runtime that count: measured, and on more than one device."""
    return [
        row
        for row in rows
        if row["runtime"] == runtime
        and row["measured"] is not None
        and len(set(row["devices"])) > 1
    ]


def figures(rows: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
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


def again(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How well the measurements agree with themselves, in the order of the placements.

    Returns:
        `spearman`, the mean rank correlation between two rounds; and `most`, what a prediction
        without error could be expected to reach against the mean of all rounds: the root of their
        reliability (Spearman 1904, 1910; Brown 1910).
    """
    from scipy.stats import spearmanr

    rounds = np.array([[np.median(run["samples"]) for run in row["runs"]] for row in rows])
    count = rounds.shape[1]
    pairs = [(one, two) for two in range(count) for one in range(two)]
    between = float(
        np.mean([spearmanr(rounds[:, one], rounds[:, two]).statistic for one, two in pairs])
    )
    reliability = count * between / (1 + (count - 1) * between)
    return {"spearman": between, "most": max(reliability, 0.0) ** 0.5}


def markdown(graphs: dict[str, Any]) -> str:
    """The tables: a row a graph, for either prediction."""
    header = [
        "graph",
        "runtime",
        "placements",
        "measured, s",
        "mean absolute error",
        "mean error",
        "Spearman",
        "at most",
        "simulator's best over the best",
        f"within 5% of the best of {SUBSET_SIZE}",
    ]

    def rows(key: str) -> Iterator[list[str]]:
        ran = [
            (name, graph, runtime)
            for name, graph in graphs.items()
            for runtime in (BEFORE, NOW)
            if runtime in graph["figures"]
        ]
        for name, graph, runtime in ran:
            found = graph["figures"][runtime][key]
            real = [row["measured"] for row in judged(graph["rows"], runtime)]
            yield [
                f"`{name}`",
                runtime,
                str(found["placements"]),
                f"{min(real):.2f} to {max(real):.2f}",
                f"{found['error']:.1%}",
                f"{found['bias']:+.1%}",
                f"{found['spearman']:.3f}",
                f"{graph['again'][runtime]['most']:.2f}",
                f"{found['best']:.3f}",
                f"{found['close']:.0%}",
            ]

    return (
        table(header, list(rows("predicted")))
        + "\nIf a transfer also held the devices at both ends, as long as it takes processor time "
        + "there:\n\n"
        + table(header, list(rows("held")))
    )


def draw(graphs: dict[str, Any], picture: Path) -> None:
    """Draws either prediction over measured step times, a row each, a panel a graph."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    titles = {"predicted": "simulated", "held": "simulated, ends held"}
    figure, axes = plt.subplots(
        len(titles),
        len(graphs),
        figsize=(4 * len(graphs), 4 * len(titles)),
        layout="constrained",
        squeeze=False,
    )
    for column, (name, graph) in enumerate(graphs.items()):
        rows = [
            row for row in graph["rows"] if row["runtime"] == NOW and row["measured"] is not None
        ]
        times = [row[key] for row in rows for key in ("measured", *titles)]
        ends = 0.95 * min(times), 1.05 * max(times)
        for ax, key in zip(axes[:, column], titles, strict=True):
            for family in dict.fromkeys(row["family"] for row in rows):
                points = [(row["measured"], row[key]) for row in rows if row["family"] == family]
                ax.scatter(*zip(*points, strict=True), s=14, label=family)
            ax.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
            ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="measured step time, s")
            ax.set_title(name, loc="left", fontsize=10)
    for ax, title in zip(axes[:, 0], titles.values(), strict=True):
        ax.set_ylabel(f"{title}, s")
    axes[0][-1].legend(fontsize=8)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=100, metadata={"Software": None})
    plt.close(figure)


def _ratio(real: Any, predicted: Any) -> float:
    return float(real[np.argmin(predicted)] / real.min())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the study; exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity")
    parser.add_argument("--quick", action="store_true", help="a small graph, a few minutes")
    parser.add_argument("--folder", type=Path, help="where all that is measured is kept")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        folder = arguments.folder or Path("build/fidelity-quick")
        run(QUICK, folder, folder / "fidelity.json", folder / "fidelity.png")
    else:
        folder = arguments.folder or Path("build/fidelity")
        picture = HERE.parent / "docs" / "fidelity.png"
        run(FULL, folder, HERE / "results" / "fidelity.json", picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
