"""Ops and groups of the bundled graphs beside the papers': `python -m benchmarks.groups`."""

from pathlib import Path

from benchmarks.markdown import table
from placeto import load_graph
from placeto.grouping import group_ops

RESULTS = Path(__file__).parent / "results"
PAPERS = {"inception_v3": "~30,000 / 83", "nmt": "~22,000 / 280"}


def run() -> None:
    """Prints the table and writes `results/groups.md`."""
    rows = []
    for name, paper in PAPERS.items():
        graph = load_graph(name)
        counts = [
            f"{int(group_ops(graph, grouping).max()) + 1}" for grouping in ("colocation", "auto")
        ]
        rows.append([f"`{name}`", f"{graph.num_ops:,}", *counts, paper])
    header = ["graph", "ops", "groups, `colocation`", "groups, `auto`", "ops / groups in ColocRL"]
    text = table(header, rows)
    (RESULTS / "groups.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    run()
