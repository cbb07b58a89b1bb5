"""The command."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.output import RESULTS, command_line, machine, picture_of
from benchmarks.papers.page import draw, page
from benchmarks.papers.published import TABLES, Table
from benchmarks.papers.study import conduct, runs_of


def run(tables: Sequence[Table], seconds: float, seeds: int, folder: Path) -> None:
    """Does what is missing and writes the page and the picture."""
    done = conduct(runs_of(tables, seconds, seeds), folder / "papers.json")
    (folder / "papers.md").write_text(page(tables, done, machine()))
    compared = next(each for each in tables if each.key == "placeto-2019")
    draw(compared, done, picture_of("papers", folder))


if __name__ == "__main__":
    quick = "the first problem of each table, one seed, 3 seconds a search; into build/"
    parser = command_line("papers", quick, run.__doc__)
    seconds = "budget of a search, of one core"
    parser.add_argument("--seconds", type=float, default=15.0, help=seconds)
    parser.add_argument("--seeds", type=int, default=3, help="of what is random")
    wanted = parser.parse_args()
    if wanted.quick:
        build = Path("build")
        build.mkdir(exist_ok=True)
        first = [replace(each, columns=each.columns[:1]) for each in TABLES]
        run(first, seconds=3.0, seeds=1, folder=build)
        print((build / "papers.md").read_text())
    else:
        run(TABLES, wanted.seconds, wanted.seeds, RESULTS)
