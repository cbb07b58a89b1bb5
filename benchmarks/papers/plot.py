"""Step time over placements evaluated, as the papers show it."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.one_core import SEARCHES
from benchmarks.papers.page import by_problem
from benchmarks.papers.published import FROM_ONE_DEVICE, Table
from benchmarks.papers.study import Run


def draw(each: Table, runs: Sequence[Run], path: Path) -> None:
    """Draws a panel for each problem of a table, a line for each run of a search.

    Args:
        each: the table.
        runs: of a study.
        path: the picture, a PNG.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = by_problem(runs)
    columns = 2
    lines = -(-len(each.columns) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(9, 2.8 * lines), layout="constrained", squeeze=False
    )
    for ax, column in zip(axes.flat, each.columns, strict=False):
        for color, method in enumerate((*SEARCHES, FROM_ONE_DEVICE)):
            for index, run in enumerate(found[column.graph, column.cluster, method]):
                points = run["trace"]
                if not points:
                    continue
                counts = [*(point[0] for point in points), run["evaluations"]]
                times = [*(point[2] for point in points), points[-1][2]]
                ax.step(
                    counts,
                    [time * 1e3 for time in times],
                    where="post",
                    color=f"C{color}",
                    linewidth=1,
                    label=None if index else method,
                )
        ax.set_xscale("log")
        ax.set_title(f"{column.graph}, {column.cluster}", fontsize=10)
        ax.set_ylabel("step time, ms")
    for ax in axes.flat[len(each.columns) :]:
        ax.set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("placements evaluated")
    lines_of = axes.flat[0].get_legend_handles_labels()
    figure.legend(*lines_of, loc="outside lower center", ncols=3, fontsize=9)
    figure.savefig(path, dpi=120)
    plt.close(figure)
