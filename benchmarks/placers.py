"""Every placer on the bundled graphs: `python -m benchmarks.placers`, or a few of them, by name.

Writes `results/placers.json`, the rows of `placeto compare`; `results/placers.md`, the table, and
`results/placers_short.md`, a few rows of it; and
`docs/schedules.png`, what the placements of one graph look like.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.output import DOCS, RESULTS, machine, picture, save, table
from benchmarks.schedule_plot import plot_schedule
from placeto import load_cluster, load_graph, load_placement, simulate
from placeto.cli import main

GRAPHS = ("inception_v3", "nmt")
CLUSTERS = ("k80x4", "k80x4-cpu")
SHORT = ("auto", "expert", "metis", "annealing", "placeto", "placeto-2019")
PICTURED = ("single", "expert", "placeto-2019")
GROUPING = "papers"
BUDGET_SECONDS = 30


def run(methods: Sequence[str] = ()) -> int:
    """Runs `placeto compare` on each cluster; exit status.

    Args:
        methods: placers that are run again, the rows of the others stay; none: all are run.
    """
    rows: list[dict[str, Any]] = []
    options = ["--grouping", GROUPING, "--budget", str(BUDGET_SECONDS)]
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
    rows = [{key: value for key, value in row.items() if key != "placement"} for row in rows]
    if methods:
        again = {_key(row): row for row in rows}
        before = json.loads((RESULTS / "placers.json").read_text())["rows"]
        rows = [again.get(_key(row), row) for row in before]
    document = {
        "command": "python -m benchmarks.placers",
        "budget_seconds": BUDGET_SECONDS,
        "machine": machine(),
        "rows": rows,
    }
    save("placers", document, markdown(rows), indent=1)
    (RESULTS / "placers_short.md").write_text(markdown(short(rows)))
    return 0


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["graph"], row["cluster"], row["method"]


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table: a row a placer, a column a graph and cluster."""
    columns = list(dict.fromkeys((row["graph"], row["cluster"]) for row in rows))
    methods = dict.fromkeys(row["method"] for row in rows)
    found = {(row["method"], row["graph"], row["cluster"]): row for row in rows}
    body = [
        [f"`{method}`", *(_cell(found.get((method, *column))) for column in columns)]
        for method in sorted(methods, key=lambda method: method == "placeto-2019")
    ]
    bound = {(row["graph"], row["cluster"]): row["lower_bound"] for row in rows}
    body.append(["no placement is below", *(f"{bound[column] * 1e3:.0f}" for column in columns)])
    return table(["step time, ms", *(f"{graph}, {cluster}" for graph, cluster in columns)], body)


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
            plot_schedule(problem, schedules[method], ax, f"{method}:", end)
            ax.label_outer()
        figure.suptitle(title, fontsize=10)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if not row["feasible"]:
        return "OOM"
    return f"{row['step_time'] * 1e3:.0f} ({row['ratio']:.2f})"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
