"""Every placer on the bundled graphs: `python -m benchmarks.placers`, or a few of them, by name.

Writes `results/placers.json`, the rows of `placeto compare`; `results/placers.md`, the table, and
`results/placers_short.md`, a few rows of it; and
`docs/schedules.png`, what the placements of one graph look like.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import DOCS, RESULTS, machine, picture, save, table
from placeto import PlacementProblem, load_cluster, load_graph, load_placement, simulate
from placeto.cli import main
from placeto.simulation import Schedule
from placeto.support.units import format_seconds

GRAPHS = ("inception_v3", "nmt")
CLUSTERS = ("k80x4", "k80x4-cpu")
SHORT = ("auto", "expert", "metis", "annealing", "placeto", "placeto-2019")
PICTURED = ("single", "expert", "placeto-2019")
_key = itemgetter("graph", "cluster", "method")
BUDGET_SECONDS = 30


def run(methods: Sequence[str] = ()) -> int:
    """Runs `placeto compare` on each cluster, with all placers or some; exit status.

    The rows of others than these stay.
    """
    rows: list[dict[str, Any]] = []
    options = ["--grouping", "papers", "--budget", str(BUDGET_SECONDS)]
    if methods:
        options += ["--methods", ",".join(methods)]
    with tempfile.TemporaryDirectory() as folder:
        for cluster in CLUSTERS:
            output = Path(folder) / f"{cluster}.json"
            to = ["--output", str(output), "--save", f"{folder}/{cluster}"]
            if status := main(["compare", *GRAPHS, "--cluster", cluster, *options, *to]):
                return status
            rows += json.loads(output.read_text())["rows"]
        if not methods:
            draw(Path(folder) / CLUSTERS[0])
    for row in rows:
        row.pop("placement", None)
    if methods:
        again = {_key(row): row for row in rows}
        before = json.loads((RESULTS / "placers.json").read_text())["rows"]
        rows = [again.get(_key(row), row) for row in before]
    document = {"budget_seconds": BUDGET_SECONDS, "machine": machine(), "rows": rows}
    save("placers", document, markdown(rows), indent=1)
    (RESULTS / "placers_short.md").write_text(markdown(short(rows)))
    return 0


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table: a row a placer, a column a graph and cluster."""
    columns = list(dict.fromkeys((row["graph"], row["cluster"]) for row in rows))
    found = {_key(row): row for row in rows}
    methods = dict.fromkeys(row["method"] for row in rows)
    body = [
        [f"`{method}`", *(_cell(found.get((*column, method))) for column in columns)]
        for method in sorted(methods, key=lambda method: method == "placeto-2019")
    ]
    bound = {key[:2]: f"{row['lower_bound'] * 1e3:.0f}" for key, row in found.items()}
    body.append(["no placement is below", *(bound[column] for column in columns)])
    return table(["step time, ms", *(", ".join(column) for column in columns)], body)


def short(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that the README shows."""
    return [row for row in rows if row["method"] in SHORT]


def draw(folder: Path) -> None:
    """Draws the schedules of the first graph's placements in `folder`, one above the other."""
    graph, cluster = load_graph(GRAPHS[0]), load_cluster(CLUSTERS[0])
    placed = {
        method: load_placement(folder / f"{graph.name}.{method}.json", graph, cluster)
        for method in PICTURED
    }
    schedules = {method: simulate(*pair) for method, pair in placed.items()}
    end = max(schedule.step_time for schedule in schedules.values())
    title = f"{graph.name} on {cluster.name}: a device's ops in colour, what it sends in grey"
    shape = {"nrows": len(placed), "figsize": (9, 6), "sharex": True}
    with picture(DOCS / "schedules.png", **shape) as (figure, axes):
        for ax, (method, (problem, _)) in zip(axes[:, 0], placed.items(), strict=True):
            plot_schedule(problem, schedules[method], ax, f"{method}:")
            ax.set_xlim(0, end * 1e3)
            ax.label_outer()
        figure.suptitle(title, fontsize=10)


def plot_schedule(problem: PlacementProblem, schedule: Schedule, ax: Any, title: str) -> None:
    """Draws when each device computes and each channel carries, time from left to right."""
    transfers = schedule.transfers
    device = schedule.devices[problem.op_group]
    source = device[problem.graph.tensor_producer[transfers.tensor]]
    for number in range(problem.num_devices):
        on = (device == number) & (schedule.finish > schedule.start)
        _bars(ax, schedule.start[on], schedule.finish[on], (number - 0.4, 0.55), f"C{number}")
        out = source == number
        _bars(ax, transfers.start[out], transfers.sent[out], (number + 0.18, 0.2), "0.45")
    ax.set_yticks(range(problem.num_devices), [d.name for d in problem.cluster.devices])
    ax.set_ylim(problem.num_devices - 0.5, -0.5)
    ax.set_xlabel("ms")
    ax.set_title(f"{title} {format_seconds(schedule.step_time)}", loc="left", fontsize=10)


def _bars(ax: Any, start: Any, finish: Any, rows: tuple[float, float], colour: str) -> None:
    """Bars of one row; ops that touch are drawn as one, or edges would hide short ones."""
    order = np.argsort(start)
    start, finish = start[order] * 1e3, finish[order] * 1e3
    if len(start) == 0:
        return
    breaks = np.flatnonzero(start[1:] > np.maximum.accumulate(finish)[:-1] + 0.05) + 1
    first = np.concatenate([[0], breaks])
    begins, ends = start[first], np.maximum.reduceat(finish, first)
    ax.broken_barh(list(zip(begins, ends - begins, strict=True)), rows, color=colour, linewidth=0)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if not row["feasible"]:
        return "OOM"
    return f"{row['step_time'] * 1e3:.0f} ({row['ratio']:.2f})"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
