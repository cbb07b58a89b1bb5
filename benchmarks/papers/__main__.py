"""Writes `results/papers.json`, every run, and `.md`, and `docs/papers.png`; goes on if stopped."""

from dataclasses import replace

from benchmarks.output import command_line, machine, picture_of, results_folder
from benchmarks.papers.page import compared, draw, page
from benchmarks.papers.published import TABLES
from benchmarks.papers.study import conduct, runs_of

if __name__ == "__main__":
    parser = command_line(
        "papers",
        "the first problem of each table, one seed, 3 seconds a search; into build/",
        "Does what is missing, and writes page and picture.",
    )
    seconds = "budget of a search, of one core"
    parser.add_argument("--seconds", type=float, default=15.0, help=seconds)
    parser.add_argument("--seeds", type=int, default=3, help="of what is random")
    wanted = parser.parse_args()
    tables, budget, seeds = TABLES, wanted.seconds, wanted.seeds
    if wanted.quick:
        tables = tuple(replace(each, columns=each.columns[:1]) for each in TABLES)
        budget, seeds = 3.0, 1
    folder = results_folder(wanted.quick)
    done = conduct(runs_of(tables, budget, seeds), folder / "papers.json")
    (folder / "papers.md").write_text(text := page(tables, done, machine()))
    draw(compared(tables), done, picture_of("papers", folder))
    print(text)
