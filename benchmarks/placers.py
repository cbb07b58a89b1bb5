"""Every placer on the bundled graphs: `python -m benchmarks.placers`, or a few of them, by name.

Writes `results/placers.json`, the rows of `placeto compare`; `results/placers.md`, the table, and
`results/placers_short.md`, a few rows of it; and `docs/schedules.png`, what placements look like.
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
from placeto import load_cluster, load_graph, load_placement, simulate
from placeto.cli import main
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
    options += ["--methods", ",".join(methods)] if methods else []
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
    cells: dict[str, dict[str, str]] = {}
    bounds: dict[str, str] = {}
    for row in rows:
        column, ms = f"{row['graph']}, {row['cluster']}", 1e3 * (row["step_time"] or 0)
        cell = f"{ms:.0f} ({row['ratio']:.2f})" if row["feasible"] else "OOM"
        cells.setdefault(row["method"], {})[column] = cell
        bounds[column] = f"{1e3 * row['lower_bound']:.0f}"
    body = [
        [f"`{method}`", *(cells[method].get(column, "-") for column in bounds)]
        for method in sorted(cells, key=lambda method: method == "placeto-2019")
    ]
    return table(["step time, ms", *bounds], [*body, ["no placement is below", *bounds.values()]])


def short(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that the README shows."""
    return [row for row in rows if row["method"] in SHORT]


def draw(folder: Path) -> None:
    """Draws when devices compute and send, of the first graph's placements in `folder`."""
    graph, cluster = load_graph(GRAPHS[0]), load_cluster(CLUSTERS[0])
    paths = [folder / f"{graph.name}.{method}.json" for method in PICTURED]
    placed = [load_placement(path, graph, cluster) for path in paths]
    schedules = [simulate(*pair) for pair in placed]
    end = max(schedule.step_time for schedule in schedules)
    title = f"{graph.name} on {cluster.name}: a device's ops in colour, what it sends in grey"
    with picture(DOCS / "schedules.png", (9, 6), nrows=len(placed), sharex=True) as (figure, axes):
        each = zip(axes[:, 0], PICTURED, placed, schedules, strict=True)
        for ax, method, (problem, _), schedule in each:
            transfers, device = schedule.transfers, schedule.devices[problem.op_group]
            source = device[graph.tensor_producer[transfers.tensor]]
            for number in range(problem.num_devices):
                on, out = (device == number) & (schedule.finish > schedule.start), source == number
                starts, sends = schedule.start[on], transfers.start[out]
                _bars(ax, starts, schedule.finish[on], (number - 0.4, 0.55), f"C{number}")
                _bars(ax, sends, transfers.sent[out], (number + 0.18, 0.2), "0.45")
            ax.set_yticks(range(problem.num_devices), [d.name for d in cluster.devices])
            ax.set(xlim=(0, end * 1e3), ylim=(problem.num_devices - 0.5, -0.5), xlabel="ms")
            told = f"{method}: {format_seconds(schedule.step_time)}"
            ax.set_title(told, loc="left", fontsize=10)
            ax.label_outer()
        figure.suptitle(title, fontsize=10)


def _bars(ax: Any, start: Any, finish: Any, rows: tuple[float, float], colour: str) -> None:
    """Bars of one row; ops that touch are drawn as one, or edges would hide short ones."""
    order = np.argsort(start)
    start, finish = start[order] * 1e3, finish[order] * 1e3
    if not len(start):
        return
    breaks = start[1:] > np.maximum.accumulate(finish)[:-1] + 0.05
    first = np.flatnonzero([True, *breaks])
    begins, ends = start[first], np.maximum.reduceat(finish, first)
    ax.broken_barh(list(zip(begins, ends - begins, strict=True)), rows, color=colour, linewidth=0)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
