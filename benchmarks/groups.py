"""Ops and groups of the bundled graphs beside the papers': `python -m benchmarks.groups`."""

from benchmarks.output import RESULTS, table
from placeto import load_graph
from placeto.extraction.bundled import SOURCES
from placeto.grouping import group_ops

# Mirhoseini et al. 2017, arXiv:1706.04972. Of the Hierarchical Planner (Mirhoseini et al. 2018)
# only the size of the largest graph is known, which is set beside the largest translation model.
PAPERS = {
    "inception_v3": "~30,000 / 83",
    "rnnlm": "~9,000 / 188",
    "nmt": "~22,000 / 280",
    "nmt_8": "largest: over 80,000",
}

if __name__ == "__main__":
    rows = []
    for name in SOURCES:
        graph = load_graph(name)
        groups = [f"{group_ops(graph, kind).max() + 1:,}" for kind in ("papers", "auto")]
        ops = f"{graph.meta['ops_traced']:,}", f"{graph.num_ops:,}"
        rows.append([f"`{name}`", *ops, *groups, PAPERS.get(name, "-")])
    header = ["graph", "ops, traced", "ops", "groups, `papers`", "groups, `auto`"]
    text = table([*header, "ops / groups in the papers"], rows)
    (RESULTS / "groups.md").write_text(text)
    print(text, end="")
