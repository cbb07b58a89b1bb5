"""The command."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.output import RESULTS, command_line, picture_of
from benchmarks.transfer.page import page, summary
from benchmarks.transfer.plot import draw
from benchmarks.transfer.study import CLUSTERS, FAMILIES, GROUPS, Plan, conduct, policy
from placeto import load_cluster
from placeto.placers.configs import DEFAULT_POLICY
from placeto.support.errors import PlacetoError
from placeto.zoo.families import SPLITS, members

PLANNED = len(FAMILIES) * SPLITS["test"] * len(CLUSTERS) * len(GROUPS)
QUICK = ("layered", "series_parallel")


def run(plan: Plan, folder: Path, planned: int) -> None:
    """Does what is missing and writes the page and the picture."""
    document = conduct(plan, folder / "transfer.json")
    (folder / "transfer.md").write_text(page(document, planned))
    (folder / "transfer_short.md").write_text(summary(document))
    draw(document, picture_of("transfer", folder))


def check(plan: Plan) -> None:
    """Makes sure, before anything is run or written, that all of it can be.

    Raises:
        PlacetoError: a policy, family or cluster that is not there, a number that makes no sense.
    """
    for name, source in plan.policies.items():
        if not name:
            raise PlacetoError(f"--policy ={source}: expected NAME=DIR")
        policy(source)
    for family in plan.families:
        members(family)
    for cluster in plan.clusters:
        load_cluster(cluster)
    wrong = [
        (f"--groups {groups}", "papers, auto, or a whole number from 1")
        for groups in plan.groups
        if groups not in GROUPS and not (groups.isdecimal() and int(groups) > 0)
    ]
    budgets = [budget for budget in plan.budgets if not 0 < budget < math.inf]
    wrong += [(f"--budgets {budget}", "seconds, more than 0") for budget in budgets]
    placements = [count for count in plan.placements if count < 1]
    wrong += [(f"--placements {count}", "a whole number from 1") for count in placements]
    counts = {"--graphs-per-family": (plan.graphs, SPLITS["test"]),
              "--searching": (plan.searching, len(plan.policies))}  # fmt: skip
    for option, (number, most) in counts.items():
        if not 0 <= number <= most:
            wrong.append((f"{option} {number}", f"a whole number from 0 to {most}"))
    for option, expected in wrong:
        raise PlacetoError(f"{option}: expected {expected}")


def parser() -> argparse.ArgumentParser:
    """The command's options; they are named as the attributes of `Plan`."""
    quick = "one made-up graph of each of two families on k80x2, one second; into build/"
    found = command_line("transfer", quick, run.__doc__)
    found.add_argument(
        "--policy",
        action="append",
        metavar="NAME=DIR",
        help="a bundled policy, or a run directory and what to call it; may be given several "
        f"times, such as for several seeds or without a family (default: {DEFAULT_POLICY})",
    )
    found.add_argument("--families", nargs="+", default=Plan.families)
    found.add_argument("--clusters", nargs="+", default=Plan.clusters)
    groups = "`papers`, `auto`, or at most how many"
    found.add_argument("--groups", nargs="+", default=Plan.groups, help=groups)
    graphs = {"dest": "graphs", "default": Plan.graphs, "metavar": "N"}
    found.add_argument("--graphs-per-family", type=int, **graphs)
    seconds = "seconds of the searches"
    found.add_argument("--budgets", nargs="*", type=float, default=Plan.budgets, help=seconds)
    counts = "to fine-tune for; the last also from scratch"
    found.add_argument("--placements", nargs="*", type=int, default=Plan.placements, help=counts)
    guides = "policies to run auto with"
    found.add_argument("--searching", type=int, default=Plan.searching, metavar="N", help=guides)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    wanted = vars(parser().parse_args(argv))
    quick = wanted.pop("quick")
    # A bundled policy is its own name.
    pairs = [text.partition("=") for text in wanted.pop("policy") or [DEFAULT_POLICY]]
    plan = Plan({name: source or name for name, _, source in pairs}, **wanted)
    try:
        check(plan)
    except PlacetoError as error:
        parser().error(str(error))
    if quick:
        build = Path("build")
        build.mkdir(exist_ok=True)
        small = Plan(plan.policies, QUICK, CLUSTERS[:1], GROUPS[:1], 1, (1.0,), (16,))
        run(small, build, len(QUICK))
        print((build / "transfer.md").read_text())
    else:
        run(plan, RESULTS, PLANNED)


if __name__ == "__main__":
    main()
