"""The study as a Markdown page, and its picture."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.one_core import SEARCHES
from benchmarks.output import panels, table
from benchmarks.papers.published import FROM_ONE_DEVICE, LEARNED, OOM, Column, Table
from benchmarks.papers.study import Run

Runs = dict[tuple[str, str, str], list[Run]]
TITLE = """# The papers' tables

{summary}

Simulated step times in seconds, on graphs that were extracted from real training steps, with at
most 128 groups; where a placer draws random numbers, the median of {seeds} seeds, with the least
and the greatest. Every search and every training has {seconds:g} seconds of one core's time, two
side by side on {machine}; the papers trained for hours. After a slash: what the paper measured, on
its own machine, with other graphs. *Italics*: it does not fit in memory.

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
    compared = next(each for each in tables if each.key == "placeto-2019")
    sections["Placements to the same step time"] = reached(compared, found)
    return heading + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())


def summary(tables: Sequence[Table], found: Runs) -> str:
    """Who is ahead of whom, on how many problems; `parts` compares Placeto with itself."""
    columns = [column for each in tables if each.key != "parts" for column in each.columns]
    problems = dict.fromkeys((column.graph, column.cluster) for column in columns)
    behind, wins = [], 0
    leads: Counter[str] = Counter()
    for problem in problems:
        times = {key[2]: typical(runs) for key, runs in found.items() if key[:2] == problem}
        learned = {method: time for method, time in times.items() if method in LEARNED}
        others = {name: time for name, time in times.items() if name.split()[0] not in LEARNED}
        rivals = learned | others
        leads[min(rivals, key=rivals.__getitem__)] += 1
        best, best_learned = min(others.values()), min(learned.values())
        if best < best_learned * 0.999:
            winner = min(others, key=others.__getitem__)
            behind.append(f"{problem[0]} on {problem[1]} (`{winner}`)")
        wins += best > best_learned * 1.001
    ahead = ", ".join(f"`{method}` on {count}" for method, count in leads.most_common())
    text = (
        f"Of {len(problems)} problems, a method that learns nothing is ahead of every learned "
        f"placer on {len(behind)}, a learned placer is ahead on {wins}, and on "
        f"{len(problems) - len(behind) - wins} they are within a thousandth. The shortest step "
        f"time is found by {ahead}."
    )
    if not 0 < len(behind) < len(problems):
        return text
    return f"{text} Learned placers are behind on {'; '.join(behind)}."


def step_times(each: Table, found: Runs) -> str:
    """A row a method, a column a problem; ours, and what was published."""
    rows = [
        [f"`{method}`", *(_cell(column, method, found) for column in each.columns)]
        for method in each.methods
    ]
    rows.append(["no placement is below", *(_bound(column, found) for column in each.columns)])
    heading = ["", *(f"{column.graph}, {column.cluster}" for column in each.columns)]
    return table(heading, rows) + (f"\n{each.remark}\n" if each.remark else "")


def reached(each: Table, found: Runs) -> str:
    """How many placements the searches simulate until they are as good as `colocrl`.

    The step time to reach is the slower of the medians of `colocrl` and of `placeto-2019` from one
    device, which at least half of the seeds of both reach.
    """
    methods = (FROM_ONE_DEVICE, "colocrl", *(m for m in SEARCHES if m != "colocrl"))
    rows, fewer = [], []
    for column in each.columns:
        runs = {method: found[column.graph, column.cluster, method] for method in methods}
        target = max(typical(runs[method]) for method in methods[:2])
        counts = [median(evaluations(run, target) for run in runs[each]) for each in methods]
        fewer.append(counts[1] / counts[0])
        texts = (f"{count:,.0f}" if math.isfinite(count) else "-" for count in counts)
        name = f"{column.graph}, {column.cluster}"
        rows.append([name, number(target), *texts, number(fewer[-1])])
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
    """The median step time in seconds; infinite where most seeds found nothing that fits."""
    return median(_time(run) for run in runs)


def evaluations(run: Run, target: float) -> float:
    """How many placements a run had evaluated when it first was at `target` seconds."""
    return next((float(point[0]) for point in run["trace"] if point[2] <= target), math.inf)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if math.isfinite(value) else "-"


def _time(run: Run) -> float:
    found = run.get("step_time")
    return float(found) if found is not None and run["feasible"] else math.inf


def _cell(column: Column, method: str, found: Runs) -> str:
    runs = found.get((column.graph, column.cluster, method), [])
    behind = f" / {column.seconds[method]:g}" if method in column.seconds else ""
    if column.seconds.get(method) == OOM:
        behind = " / OOM"
    if not runs or all(run["note"] for run in runs):
        return f"-{behind}"
    text = number(typical(runs))
    if text == "-":
        text = f"*{number(runs[0]['step_time'])}*" if runs[0]["step_time"] else "-"
    elif len(runs) > 1:
        times = sorted(_time(run) for run in runs)
        text += f" ({number(times[0])} to {number(times[-1])})"
    return text + behind


def _bound(column: Column, found: Runs) -> str:
    problem = (column.graph, column.cluster)
    bound = next(runs for key, runs in found.items() if key[:2] == problem)[0]["lower_bound"]
    return "nothing fits" if bound is None else number(bound)


def draw(each: Table, runs: Sequence[Run], path: Path) -> None:
    """Draws step time over placements evaluated: a panel a problem, a line a run of a search."""
    found = by_problem(runs)
    with panels(path, len(each.columns), (4.5, 2.8), ncols=3, fontsize=9) as axes:
        for ax, column in zip(axes, each.columns, strict=True):
            for color, method in enumerate((*SEARCHES, FROM_ONE_DEVICE)):
                for index, run in enumerate(found[column.graph, column.cluster, method]):
                    points = run["trace"]
                    if not points:
                        continue
                    counts = [*(point[0] for point in points), run["evaluations"]]
                    times = [1e3 * point[2] for point in (*points, points[-1])]
                    label = None if index else method
                    style = {"where": "post", "color": f"C{color}", "linewidth": 1}
                    ax.step(counts, times, label=label, **style)
            ax.set_xscale("log")
            ax.set_title(f"{column.graph}, {column.cluster}", fontsize=10)
            ax.set_ylabel("step time, ms")
        for ax in axes[-2:]:
            ax.set_xlabel("placements evaluated")
