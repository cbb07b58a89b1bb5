"""Cumulative distributions of step time, as the paper shows them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.output import panels
from benchmarks.transfer.page import headline, points, searched
from benchmarks.transfer.study import SCRATCH, SEARCHES, TUNED, ZERO_SHOT

ALWAYS = (*ZERO_SHOT, "etf", "heft", "expert", "metis")
COLOURS = 10  # that differ


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Draws a panel for each family, a line for each method: share of problems over step time."""
    found = points(document)
    found = searched(found[found["policy"].isin(["", *headline(document["policies"])])])
    families = found["family"].unique()
    methods = drawn(found["method"].unique())
    with panels(path, len(families), (4.5, 3.2), ncols=4, fontsize=8) as axes:
        for ax, family in zip(axes, families, strict=True):
            for number, method in enumerate(methods):
                own = found[(found["family"] == family) & (found["method"] == method)]["relative"]
                if own.empty:
                    continue
                line = {"color": f"C{number}", "linestyle": "-" if number < COLOURS else "--"}
                times, shares = distribution(own)
                ax.step(times, shares, where="post", label=method, **line)
            ax.set_xlim(0.99, 2)
            ax.set_title(family, fontsize=10)
            ax.set_ylabel("share of problems")
            ax.set_xlabel("step time over the best known")


def distribution(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Values in order and the share of all that are at most that; infinite ones are never met."""
    finite = sorted(value for value in values if math.isfinite(value))
    shares = [(number + 1) / len(values) for number in range(len(finite))]
    return [1.0, *finite], [0.0, *shares]


def drawn(there: Sequence[str]) -> list[str]:
    """What is drawn: of searches those with the least budget, of trainings the longest."""
    budgets = sorted(float(text.split()[1]) for text in there if text.startswith("auto, "))
    shortest = [f"{method}, {least:g} s" for least in budgets[:1] for method in SEARCHES]
    trained = [text for text in there if text.startswith((TUNED, SCRATCH))]
    most = max((int(text.split()[-1]) for text in trained), default=0)
    longest = [text for text in trained if text.endswith(f" {most}")]
    return [method for method in (*ALWAYS, *longest, *shortest) if method in there]
