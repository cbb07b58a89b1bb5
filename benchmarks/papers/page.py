"""The study as a Markdown page, and its picture."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median, median_high

import pandas as pd

from benchmarks.one_core import SEARCHES
from benchmarks.output import panels, table
from benchmarks.papers.published import FROM_ONE_DEVICE, LEARNED, OOM, Column, Table
from benchmarks.papers.study import Run

Runs = dict[tuple[str, str, str], list[Run]]
TITLE = """# The papers' tables

{summary}

Simulated step times in seconds, on graphs that were extracted from real training steps, in groups
`papers`: by the papers' rules, at most 280. Where a placer draws random numbers, the upper median
of {seeds} seeds, with the least and the greatest. Every search and every training has {seconds:g}
seconds of one core's time, two side by side on {machine}; the papers trained for hours. `placeto`
begins with the policy that ships, trained on other graphs, and all other learned placers with
nothing. After a slash: what the paper measured, on its own machine, with other graphs. *Italics*:
it does not fit in memory.

Written by `python -m benchmarks.papers`; all {runs} runs, {hours:.1f} hours of one core, are in
`papers.json`.
"""


def by_problem(runs: Sequence[Run]) -> Runs:
    """(graph, cluster, method) -> its runs, one a seed."""
    found: Runs = defaultdict(list)
    for run in runs:
        found[run["graph"], run["cluster"], run["method"]].append(run)
    return found


def page(tables: Sequence[Table], runs: Sequence[Run], machine: str) -> str:
    """The whole page."""
    found = by_problem(runs)
    heading = TITLE.format(
        summary=summary(tables, found),
        seeds=len({run["seed"] for run in runs}),
        seconds=runs[0]["budget_seconds"],
        machine=machine,
        runs=len(runs),
        hours=sum(run.get("wall_seconds", 0) for run in runs) / 3600,
    )
    sections = {each.title: step_times(each, found) for each in tables}
    sections["Placements to the same step time"] = reached(compared(tables), found)
    return heading + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())


def compared(tables: Sequence[Table]) -> Table:
    """The table whose searches are set beside each other."""
    return next(each for each in tables if each.key == "placeto-2019")


def summary(tables: Sequence[Table], found: Runs) -> str:
    """Who is ahead of whom, on how many problems; `parts` compares Placeto with itself."""
    columns = [column for each in tables if each.key != "parts" for column in each.columns]
    problems = list(dict.fromkeys((column.graph, column.cluster) for column in columns))
    times = pd.Series({key: typical(runs) for key, runs in found.items()}).unstack().loc[problems]
    learned = times[[method for method in LEARNED if method in times]]
    others = times[[name for name in times if name.split()[0] not in LEARNED]]
    ratio, winners = others.min(axis=1) / learned.min(axis=1), others.idxmin(axis=1)
    behind = [
        f"{graph} on {cluster} (`{winner}`)"
        for (graph, cluster), winner in winners[ratio < 0.999].items()
    ]
    wins = (ratio > 1.001).sum()
    leads = Counter(learned.join(others).idxmin(axis=1))
    ahead = ", ".join(f"`{method}` on {count}" for method, count in leads.most_common())
    losses = f" Learned placers are behind on {'; '.join(behind)}."
    return (
        f"Of {len(problems)} problems, a method that learns nothing is ahead of every learned "
        f"placer on {len(behind)}, a learned placer is ahead on {wins}, and on "
        f"{len(problems) - len(behind) - wins} they are within a thousandth. The shortest step "
        f"time is found by {ahead}.{losses if 0 < len(behind) < len(problems) else ''}"
    )


def step_times(each: Table, found: Runs) -> str:
    """A row a method, a column a problem; ours, and what was published."""
    rows = [
        [f"`{method}`", *(_cell(column, method, found) for column in each.columns)]
        for method in each.methods
    ]
    bounds = {key[:2]: runs[0]["lower_bound"] for key, runs in found.items()}
    below = [bounds[column.graph, column.cluster] for column in each.columns]
    texts = ("nothing fits" if bound is None else number(bound) for bound in below)
    rows.append(["no placement is below", *texts])
    heading = ["", *(column.name for column in each.columns)]
    return table(heading, rows) + (f"\n{each.remark}\n" if each.remark else "")


def reached(each: Table, found: Runs) -> str:
    """How many placements the searches simulate until they are as good as `colocrl`.

    The step time to reach is the slower of the medians of `colocrl` and of `placeto-2019` from one
    device, which at least half of the seeds of both reach.
    """
    methods = (FROM_ONE_DEVICE, "colocrl", *(m for m in SEARCHES if m != "colocrl"))
    rows, fewer = [], []
    for column in each.columns:
        runs = [found[column.graph, column.cluster, method] for method in methods]
        target = max(map(typical, runs[:2]))
        counts = [
            median(next((at for at, _, t in run["trace"] if t <= target), math.inf) for run in own)
            for own in runs
        ]
        fewer.append(counts[1] / counts[0])
        texts = (f"{count:,.0f}" if math.isfinite(count) else "-" for count in counts)
        rows.append([column.name, number(target), *texts, number(fewer[-1])])
    ahead = sum(ratio > 1 for ratio in fewer)
    return table(
        ["", "step time, s", *(f"`{method}`" for method in methods), "times fewer"], rows
    ) + (
        f"\nTimes fewer: placements of `colocrl` over those of `{FROM_ONE_DEVICE}`, which starts "
        "from one device as in the paper. The paper has up to 6.1; here `placeto-2019` needs fewer "
        f"on {ahead} of {len(fewer)} problems, {number(max(fewer))} times at best. Counted are "
        "placements that were simulated, starts included. `placeto-2019` alone begins with the "
        "best of one device, the expert's and earliest finish, and may be there before it has "
        "learned anything.\n"
    )


def typical(runs: Sequence[Run]) -> float:
    """The upper median step time in seconds; infinite where most seeds found nothing that fits."""
    return median_high(map(_time, runs))


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if math.isfinite(value) else "-"


def _time(run: Run) -> float:
    return run["step_time"] if run.get("feasible") else math.inf


def _cell(column: Column, method: str, found: Runs) -> str:
    runs = found.get((column.graph, column.cluster, method), [])
    text = number(typical(runs)) if runs else "-"
    if runs and text == "-" and runs[0].get("step_time"):
        text = f"*{number(runs[0]['step_time'])}*"
    elif text != "-" and len(runs) > 1:
        times = sorted(map(_time, runs))
        text += f" ({number(times[0])} to {number(times[-1])})"
    if (published := column.seconds.get(method)) is None:
        return text
    return f"{text} / {'OOM' if published == OOM else f'{published:g}'}"


def draw(each: Table, runs: Sequence[Run], path: Path) -> None:
    """Draws step time over placements evaluated: a panel a problem, a line a run of a search."""
    found = by_problem(runs)
    with panels(path, len(each.columns), (4.5, 2.8), ncols=3, fontsize=9) as axes:
        for ax, column in zip(axes, each.columns, strict=True):
            for color, method in enumerate((*SEARCHES, FROM_ONE_DEVICE)):
                for index, run in enumerate(found[column.graph, column.cluster, method]):
                    if points := run["trace"]:
                        counts = [*(point[0] for point in points), run["evaluations"]]
                        times = [1e3 * point[2] for point in (*points, points[-1])]
                        style = {"where": "post", "color": f"C{color}", "linewidth": 1}
                        ax.step(counts, times, label=None if index else method, **style)
            ax.set_xscale("log")
            ax.set_title(column.name, fontsize=10)
            ax.set_ylabel("step time, ms")
        for ax in axes[-2:]:
            ax.set_xlabel("placements evaluated")
