"""Ops and groups of the bundled graphs beside the papers': `python -m benchmarks.groups`."""

from pathlib import Path

from benchmarks.markdown import table
from placeto import load_graph
from placeto.extraction.bundled import SOURCES
from placeto.grouping import group_ops

RESULTS = Path(__file__).parent / "results"
GROUPINGS = ("papers", "auto")
# Mirhoseini et al. 2017, arXiv:1706.04972. Of the Hierarchical Planner (Mirhoseini et al. 2018)
# only the size of the largest graph is known, which is set beside the largest translation model.
PAPERS = {
    "inception_v3": "~30,000 / 83",
    "rnnlm": "~9,000 / 188",
    "nmt": "~22,000 / 280",
    "nmt_8": "largest: over 80,000",
}


def run() -> None:
    """Prints the table and writes `results/groups.md`."""
    rows = []
    for name in SOURCES:
        graph = load_graph(name)
        counts = [f"{int(group_ops(graph, grouping).max()) + 1:,}" for grouping in GROUPINGS]
        sizes = [f"{graph.meta['ops_traced']:,}", f"{graph.num_ops:,}"]
        rows.append([f"`{name}`", *sizes, *counts, PAPERS.get(name, "-")])
    header = [
        "graph",
        "ops, traced",
        "ops",
        *(f"groups, `{grouping}`" for grouping in GROUPINGS),
        "ops / groups in the papers",
    ]
    text = table(header, rows)
    (RESULTS / "groups.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    run()
