"""The command."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.transfer.page import page, summary
from benchmarks.transfer.plot import draw
from benchmarks.transfer.study import (
    BUDGETS,
    CLUSTERS,
    FAMILIES,
    FINE_TUNED,
    GROUPS,
    TRAINED,
    Plan,
    conduct,
    policy,
)
from placeto import load_cluster
from placeto.placers.configs import DEFAULT_POLICY
from placeto.support.errors import PlacetoError
from placeto.zoo.families import SPLITS, members

FOLDER = Path(__file__).parents[1] / "results"
PICTURE = Path(__file__).parents[2] / "docs" / "transfer.png"
PLANNED = len(FAMILIES) * SPLITS["test"] * len(CLUSTERS) * len(GROUPS)
QUICK = ("layered", "series_parallel")


def run(plan: Plan, runs: Path, text: Path, picture: Path, planned: int) -> None:
    """Does what is missing and writes the page and the picture."""
    document = conduct(plan, runs)
    text.write_text(page(document, planned))
    text.with_name("transfer_short.md").write_text(summary(document))
    draw(document, picture)


def policies(texts: list[str]) -> dict[str, str]:
    """`NAME=DIR` as a mapping; a bundled policy is its own name."""
    pairs = (text.partition("=") for text in texts)
    return {name: source or name for name, _, source in pairs}


def check(chosen: dict[str, str], wanted: argparse.Namespace) -> None:
    """Makes sure, before anything is run or written, that all of it can be.

    Raises:
        PlacetoError: a policy, family or cluster that is not there, a number that makes no sense.
    """
    for name, source in chosen.items():
        if not name:
            raise PlacetoError(f"--policy ={source}: expected NAME=DIR")
        policy(source)
    for family in wanted.families:
        members(family)
    for cluster in wanted.clusters:
        load_cluster(cluster)
    for groups in wanted.groups:
        if groups not in GROUPS and not (groups.isdecimal() and int(groups) > 0):
            raise PlacetoError(
                f"--groups {groups}: expected papers, auto, or a whole number from 1"
            )
    for budget in wanted.budgets:
        if not 0 < budget < math.inf:
            raise PlacetoError(f"--budgets {budget}: expected seconds, more than 0")
    for placements in wanted.placements:
        if placements < 1:
            raise PlacetoError(f"--placements {placements}: expected a whole number from 1")
    for option, number, most in (
        ("--graphs-per-family", wanted.graphs_per_family, SPLITS["test"]),
        ("--searching", wanted.searching, len(chosen)),
    ):
        if not 0 <= number <= most:
            raise PlacetoError(f"{option} {number}: expected a whole number from 0 to {most}")


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=run.__doc__)
    parser.add_argument(
        "--policy",
        action="append",
        metavar="NAME=DIR",
        help="a bundled policy, or a run directory and what to call it; may be given several "
        f"times, such as for several seeds or without a family (default: {DEFAULT_POLICY})",
    )
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--clusters", nargs="+", default=CLUSTERS)
    parser.add_argument(
        "--groups", nargs="+", default=GROUPS, help="`papers`, `auto`, or at most how many"
    )
    parser.add_argument("--graphs-per-family", type=int, default=SPLITS["test"], metavar="N")
    parser.add_argument(
        "--budgets", nargs="*", type=float, default=BUDGETS, help="seconds of the searches"
    )
    parser.add_argument(
        "--placements",
        nargs="*",
        type=int,
        default=(FINE_TUNED, TRAINED),
        help="to fine-tune for; the last also from scratch",
    )
    parser.add_argument(
        "--searching", type=int, default=1, metavar="N", help="policies to run auto with"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one made-up graph of each of two families on k80x2, one second; into build/",
    )
    wanted = parser.parse_args(argv)
    chosen = policies(wanted.policy or [DEFAULT_POLICY])
    try:
        check(chosen, wanted)
    except PlacetoError as error:
        parser.error(str(error))
    if wanted.quick:
        build = Path("build")
        build.mkdir(exist_ok=True)
        run(
            Plan(chosen, QUICK, CLUSTERS[:1], GROUPS[:1], 1, (1.0,), (16,)),
            build / "transfer.json",
            build / "transfer.md",
            build / "transfer.png",
            len(QUICK),
        )
        print((build / "transfer.md").read_text())
    else:
        plan = Plan(
            chosen,
            wanted.families,
            wanted.clusters,
            wanted.groups,
            wanted.graphs_per_family,
            wanted.budgets,
            wanted.placements,
            wanted.searching,
        )
        run(plan, FOLDER / "transfer.json", FOLDER / "transfer.md", PICTURE, PLANNED)


if __name__ == "__main__":
    main()
