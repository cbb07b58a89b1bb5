"""How far the calibrated simulator can be believed: `python -m benchmarks.fidelity [--quick]`.

Placements of real training steps, measured on the two workers of `local-2` and predicted by the
simulator after `placeto calibrate`. Op times and launch overhead come from steps with all ops on
one device, channels from steps that do nothing but send; every placement that is judged here is on
both devices. The two placements on a single device are shown, and not judged.

Everything is kept in a folder and goes on where it was stopped: extracted graphs, the calibration,
and each measurement. Writes `results/fidelity.json`, `results/fidelity.md` and
`docs/fidelity.png`; with `--quick` all of it goes into the folder.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.splits import Split, splits
from placeto import load_cluster, load_graph, save_graph
from placeto.cli import main as placeto
from placeto.files import read_json, write_json
from placeto.measurement import Effort, Runtime, find_runnable
from placeto.measurement.calibration.machine import machine
from placeto.placers import NotApplicable, place
from placeto.problem import PlacementProblem
from placeto.simulation import step_times

HERE = Path(__file__).parent
CLUSTER = "local-2"
CALIBRATED = "local-2-calibrated"
SINGLE = "single device"
PLACERS = ("expert", "metis", "heft", "etf", "m-sct", "annealing", "placeto")
CLOSE = 1.05
SUBSETS = 1000
SUBSET_SIZE = 10


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        sources: name -> what is extracted.
        effort: of each placement.
        calibration: options of `placeto calibrate`.
        budget_seconds: of each placer.
        most: placements a graph; None for all.
    """

    sources: dict[str, str]
    effort: Effort
    calibration: tuple[str, ...]
    budget_seconds: float
    most: int | None = None


FULL = Plan(
    {
        "inception_v3": "keras:InceptionV3?batch=4",
        "resnet50": "keras:ResNet50?batch=4",
        "rnnlm": "zoo:rnnlm?layers=2&batch=16&length=10&hidden=1024",
    },
    Effort(warm_up=2, steps=7, deadline_seconds=600),
    ("--steps", "15", "--traces", "9", "--deadline", "900"),
    budget_seconds=10,
)
QUICK = Plan(
    {"rnnlm": "zoo:rnnlm?layers=2&batch=4&length=4&hidden=128&embedding=128&vocabulary=1000"},
    Effort(warm_up=1, steps=3, deadline_seconds=300),
    ("--steps", "5", "--traces", "3"),
    budget_seconds=1,
    most=8,
)


def run(plan: Plan, folder: Path, results: Path, picture: Path) -> int:
    """Measures what is missing and writes the report; exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    calibrated = folder / "calibrated"
    status = extract(plan, folder) or calibrate(plan, folder, calibrated)
    if status:
        return status
    document = read_json(results) if results.exists() else {"graphs": {}}
    document |= {
        "command": "python -m benchmarks.fidelity",
        "machine": machine(),
        "cluster": load_cluster(calibrated / f"{CALIBRATED}.yaml").source,
        "effort": {"warm_up": plan.effort.warm_up, "steps": plan.effort.steps},
    }
    for name in plan.sources:
        rows = document["graphs"].setdefault(name, {"source": plan.sources[name], "rows": []})
        for row in measured(plan, calibrated, name, rows["rows"]):
            rows["rows"].append(row)
            write_json(results, document)
    for graph in document["graphs"].values():
        graph["figures"] = figures(judged(graph["rows"]))
    write_json(results, document)
    results.with_suffix(".md").write_text(markdown(document["graphs"]))
    draw(document["graphs"], picture)
    print(results.with_suffix(".md").read_text(), end="")
    return 0


def extract(plan: Plan, folder: Path) -> int:
    """Extracts what is not there yet; exit status."""
    for name, source in plan.sources.items():
        path = folder / f"{name}.json.gz"
        if not path.exists():
            given = folder / f"{name}.new.json.gz"
            if status := placeto(["extract", source, "-o", str(given)]):
                return status
            save_graph(replace(load_graph(given), name=name), path)
            given.unlink()
    return 0


def calibrate(plan: Plan, folder: Path, calibrated: Path) -> int:
    """Calibrates the cluster and all graphs in one go, unless that is done; exit status."""
    if (calibrated / f"{CALIBRATED}.yaml").exists():
        return 0
    graphs = [word for name in plan.sources for word in ("--graph", f"{folder}/{name}.json.gz")]
    command = ["calibrate", "--cluster", CLUSTER, *graphs, "-o", str(calibrated)]
    return placeto([*command, *plan.calibration])


def measured(
    plan: Plan, folder: Path, name: str, known: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Rows of the placements of a graph that are not known yet."""
    graph = load_graph(folder / f"{name}.json.gz")
    problem = PlacementProblem(graph, load_cluster(folder / f"{CALIBRATED}.yaml"), "auto")
    runnable = find_runnable(graph, folder)
    done = {row["label"] for row in known}
    with Runtime(problem.cluster) as runtime:
        for split in list(plan_splits(plan, problem, done)):
            measurement = runtime.measure(problem, split.devices, runnable, plan.effort)
            predicted = float(step_times(problem, split.devices[None])[0])
            print(
                f"{name}: {split.label}: {measurement.step_time:.4g} s measured, "
                f"{predicted:.4g} s predicted {measurement.reason}",
                file=sys.stderr,
                flush=True,
            )
            yield {
                "label": split.label,
                "family": split.family,
                "devices": "".join(map(str, split.devices.tolist())),
                "measured": measurement.step_time if measurement.feasible else None,
                "reason": measurement.reason,
                "samples": list(measurement.samples),
                "predicted": predicted,
            }


def plan_splits(plan: Plan, problem: PlacementProblem, done: set[str]) -> Iterator[Split]:
    """The placements to measure, the placers' own last; labels in `done` are left out."""
    fixed = list(splits(problem))
    if plan.most is not None:
        fixed = fixed[:2] + fixed[2 :: len(fixed) // plan.most]
    yield from (split for split in fixed if split.label not in done)
    for method in PLACERS:
        if method in done:
            continue
        try:
            placement = place(problem, method, plan.budget_seconds)
        except NotApplicable:
            continue
        yield Split(method, "placer", placement.devices)


def judged(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that count: measured, and on more than one device."""
    return [row for row in rows if row["measured"] is not None and len(set(row["devices"])) > 1]


def figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How well predictions agree with measurements.

    Returns:
        `placements`; `error`, the mean absolute percentage error as a fraction; `bias`, the mean
        signed one; `spearman`, the rank correlation; `best`, the measured step time of the
        placement that is predicted to be fastest over that of the measured fastest; `close`, the
        share of random subsets in which that ratio is at most 1.05.
    """
    from scipy.stats import spearmanr

    real = np.array([row["measured"] for row in rows])
    predicted = np.array([row["predicted"] for row in rows])
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


def markdown(graphs: dict[str, Any]) -> str:
    """The table: a row a graph."""
    header = [
        "graph",
        "placements",
        "measured, s",
        "mean absolute error",
        "mean error",
        "Spearman",
        "simulator's best over the best",
        f"within 5% of the best of {SUBSET_SIZE}",
    ]
    rows = []
    for name, graph in graphs.items():
        found, real = graph["figures"], [row["measured"] for row in judged(graph["rows"])]
        rows.append(
            [
                f"`{name}`",
                str(found["placements"]),
                f"{min(real):.2f} to {max(real):.2f}",
                f"{found['error']:.1%}",
                f"{found['bias']:+.1%}",
                f"{found['spearman']:.3f}",
                f"{found['best']:.3f}",
                f"{found['close']:.0%}",
            ]
        )
    return table(header, rows)


def draw(graphs: dict[str, Any], picture: Path) -> None:
    """Draws predicted over measured step times, a panel a graph."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(graphs), figsize=(4 * len(graphs), 4), layout="constrained", squeeze=False
    )
    for ax, (name, graph) in zip(axes[0], graphs.items(), strict=True):
        rows = [row for row in graph["rows"] if row["measured"] is not None]
        for family in dict.fromkeys(row["family"] for row in rows):
            points = [(r["measured"], r["predicted"]) for r in rows if r["family"] == family]
            ax.scatter(*zip(*points, strict=True), s=14, label=family)
        longest = max(max(row["measured"], row["predicted"]) for row in rows)
        ax.plot([0, longest], [0, longest], color="0.6", linewidth=1, zorder=0)
        ax.set_xlabel("measured step time, s")
        ax.set_title(name, loc="left", fontsize=10)
    axes[0][0].set_ylabel("simulated step time, s")
    axes[0][-1].legend(fontsize=8)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=120, metadata={"Software": None})


def _ratio(real: Any, predicted: Any) -> float:
    return float(real[np.argmin(predicted)] / real.min())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the study; exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity")
    parser.add_argument("--quick", action="store_true", help="a small graph, a minute")
    parser.add_argument("--folder", type=Path, help="where graphs and calibration are kept")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        folder = arguments.folder or Path("build/fidelity-quick")
        return run(QUICK, folder, folder / "fidelity.json", folder / "fidelity.png")
    folder = arguments.folder or Path("build/fidelity")
    picture = HERE.parent / "docs" / "fidelity.png"
    return run(FULL, folder, HERE / "results" / "fidelity.json", picture)


if __name__ == "__main__":
    sys.exit(main())
