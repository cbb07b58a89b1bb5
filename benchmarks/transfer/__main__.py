"""Writes `results/transfer.json`, every run, `.md` and `docs/transfer.png`; goes on if stopped."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import command_line, panels, picture_of, results_folder
from benchmarks.transfer import study
from benchmarks.transfer.page import page, points, searched, summary
from benchmarks.transfer.study import CLUSTERS, FAMILIES, GROUPS, SCRATCH, TUNED, Plan, headline
from placeto import load_cluster
from placeto.search.settings import SHIPPED
from placeto.support.errors import PlacetoError
from placeto.zoo.families import SPLITS, members

PLANNED = len(FAMILIES) * SPLITS["test"] * len(CLUSTERS) * len(GROUPS)
QUICK = ("layered", "series_parallel")
DRAWN = (*study.ZERO_SHOT, "etf", "heft", "expert", "metis")
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
                if len(own):
                    met = np.sort(own[np.isfinite(own)])  # infinite ones never are
                    shares = np.arange(len(met) + 1) / len(own)
                    line = {"color": f"C{number}", "linestyle": "-" if number < COLOURS else "--"}
                    ax.step([1.0, *met], shares, where="post", label=method, **line)
            ax.set_xlim(0.99, 2)
            ax.set_title(family, fontsize=10)
            ax.set_ylabel("share of problems")
            ax.set_xlabel("step time over the best known")


def drawn(there: Sequence[str]) -> list[str]:
    """What is drawn: of searches those with the least budget, of trainings the longest."""
    budgets = sorted(float(text.split()[1]) for text in there if text.startswith("auto, "))
    shortest = [f"{method}, {least:g} s" for least in budgets[:1] for method in study.SEARCHES]
    trained = [text for text in there if text.startswith((TUNED, SCRATCH))]
    most = max((int(text.split()[-1]) for text in trained), default=0)
    longest = [text for text in trained if text.endswith(f" {most}")]
    return [method for method in (*DRAWN, *longest, *shortest) if method in there]


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """Reads a number above 0 of a kind."""

    def read(text: str) -> float:
        if not 0 < (value := kind(text)) < math.inf:
            raise ValueError
        return value

    read.__name__ = f"positive {kind.__name__}"  # which argparse tells of
    return read


def groups(text: str) -> str:
    """Reads a grouping, as it is written."""
    if text in GROUPS or (text.isdecimal() and int(text) > 0):
        return text
    raise ArgumentTypeError(f"{text}: expected papers, auto, or a whole number from 1")


def main(argv: Sequence[str] | None = None) -> None:
    """The command line; all that it names has to be there, before anything is run or written."""
    told = "one made-up graph of each of two families on k80x2, one second; into build/"
    parser = command_line("transfer", told, "Does what is missing, and writes page and picture.")
    add, most = parser.add_argument, range(SPLITS["test"] + 1)
    several = (
        "a bundled policy, or a run directory and what to call it; may be given several times, "
        f"such as for several seeds or without a family (default: {SHIPPED})"
    )
    add("--policy", action="append", metavar="NAME=DIR", help=several)
    add("--families", nargs="+")
    add("--clusters", nargs="+")
    add("--groups", nargs="+", type=groups, help="`papers`, `auto`, or at most how many")
    add("--graphs-per-family", dest="graphs", type=int, choices=most, metavar="N")
    add("--budgets", nargs="*", type=positive(float), help="seconds of the searches")
    counts = "to fine-tune for; the last also from scratch"
    add("--placements", nargs="*", type=positive(int), help=counts)
    add("--searching", type=int, metavar="N", help="policies to run auto with")
    # The options are named as the attributes of `Plan`.
    parser.set_defaults(**{name: getattr(Plan, name) for name in Plan.__match_args__[1:]})
    wanted = vars(parser.parse_args(argv))
    quick = wanted.pop("quick")
    # A bundled policy is its own name.
    pairs = [text.partition("=") for text in wanted.pop("policy") or [SHIPPED]]
    plan = Plan({name: source or name for name, _, source in pairs}, **wanted)
    try:
        for source in plan.policies.values():
            study.policy(source)
        for family in plan.families:
            members(family)
        for cluster in plan.clusters:
            load_cluster(cluster)
    except PlacetoError as error:
        parser.error(str(error))
    if "" in plan.policies:
        parser.error("--policy: expected NAME=DIR")
    if not 0 <= plan.searching <= len(plan.policies):
        parser.error(f"--searching {plan.searching}: expected 0 to {len(plan.policies)}")
    if quick:
        plan = Plan(plan.policies, QUICK, CLUSTERS[:1], GROUPS[:1], 1, (1.0,), (16,))
    folder = results_folder(quick)
    document = study.conduct(plan, folder / "transfer.json")
    text = page(document, len(QUICK) if quick else PLANNED)
    (folder / "transfer.md").write_text(text)
    (folder / "transfer_short.md").write_text(summary(document))
    draw(document, picture_of("transfer", folder))
    print(text)


if __name__ == "__main__":
    main()
