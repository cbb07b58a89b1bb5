"""The command."""

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.papers.page import page
from benchmarks.papers.plot import draw
from benchmarks.papers.published import TABLES
from benchmarks.papers.study import Plan, conduct, machine

FOLDER = Path(__file__).parents[1] / "results"
PICTURE = Path(__file__).parents[2] / "docs" / "papers.png"
SECONDS, SEEDS = 15.0, 3
QUICK_SECONDS, QUICK_SEEDS, QUICK_COLUMNS = 3.0, 1, 1


def run(plan: Plan, runs: Path, text: Path, picture: Path) -> None:
    """Does what is missing and writes the page and the picture."""
    done = conduct(plan, runs)
    text.write_text(page(plan.tables, done, machine()))
    for each in plan.tables:
        if each.key == "placeto-2019":
            draw(each, done, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=run.__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the first problem of each table, one seed, 3 seconds a search; into build/",
    )
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="budget of a search, of one core"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of what is random")
    wanted = parser.parse_args()
    if wanted.quick:
        tables = [replace(each, columns=each.columns[:QUICK_COLUMNS]) for each in TABLES]
        build = Path("build")
        build.mkdir(exist_ok=True)
        run(
            Plan(tables, QUICK_SECONDS, QUICK_SEEDS),
            build / "papers.json",
            build / "papers.md",
            build / "papers.png",
        )
        print((build / "papers.md").read_text())
    else:
        run(
            Plan(TABLES, wanted.seconds, wanted.seeds),
            FOLDER / "papers.json",
            FOLDER / "papers.md",
            PICTURE,
        )
