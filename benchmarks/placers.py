"""Every placer on the bundled graphs: `python -m benchmarks.placers`.

Writes `results/placers.json`, the rows of `placeto compare`, and `results/placers.md`, the table.
"""

import json
import platform
import sys
from pathlib import Path

from benchmarks.markdown import table
from placeto.cli import main

RESULTS = Path(__file__).parent / "results"
GRAPHS = ("inception_v3", "nmt")
CLUSTERS = ("k80x4", "k80x4-cpu")
BUDGET_SECONDS = 240


def run() -> int:
    """Runs `placeto compare` on each cluster; exit status."""
    rows = []
    for cluster in CLUSTERS:
        path = RESULTS / f"placers.{cluster}.json"
        command = ["compare", *GRAPHS, "--cluster", cluster]
        status = main([*command, "--budget", str(BUDGET_SECONDS), "--output", str(path)])
        if status:
            return status
        rows += json.loads(path.read_text())["rows"]
        path.unlink()
    document = {
        "command": "python -m benchmarks.placers",
        "budget_seconds": BUDGET_SECONDS,
        "machine": f"{platform.machine()}, 2 cores, Python {platform.python_version()}",
        "rows": [{key: row[key] for key in row if key != "placement"} for row in rows],
    }
    (RESULTS / "placers.json").write_text(json.dumps(document, indent=1) + "\n")
    (RESULTS / "placers.md").write_text(markdown(document["rows"]))
    return 0


def markdown(rows: list[dict]) -> str:
    """The table of the README: a row a placer, a column a graph and cluster."""
    columns = list(dict.fromkeys((row["graph"], row["cluster"]) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    order = [method for method in methods if method != "placeto"] + ["placeto"]
    found = {(row["method"], row["graph"], row["cluster"]): row for row in rows}
    body = [
        [f"`{method}`", *(_cell(found.get((method, *column))) for column in columns)]
        for method in order
    ]
    bound = {(row["graph"], row["cluster"]): row["lower_bound"] for row in rows}
    body.append(["*no placement is below*", *(f"{bound[c] * 1e3:.0f}" for c in columns)])
    return table(["step time, ms", *(f"{graph}, {cluster}" for graph, cluster in columns)], body)


def _cell(row: dict | None) -> str:
    if row is None:
        return "-"
    if not row["feasible"]:
        return "OOM"
    return f"{row['step_time'] * 1e3:.0f} ({row['ratio']:.2f})"


if __name__ == "__main__":
    sys.exit(run())
