"""What moves of ranks win: `python -m benchmarks.ranks`.

The named instances of several microbatches: `auto` for ten seconds, and for eight and two seconds
of moves of ranks, as `placeto place` does. It takes seven minutes. Writes `results/ranks.json` and
`results/ranks.md`.
"""

import numpy as np

from benchmarks.output import command_line, machine, results_folder, save, table
from placeto.placers import place
from placeto.placers.ordering import RANKS_SHARE, ordered, reordered
from placeto.zoo.instances import instances

SEEDS, SECONDS = range(2), 10.0
HEADER = ["instance", "order", "`auto`, all of the time", "and ranks", "fewer seconds of it"]


def study(name: str, seeds: range, seconds: float) -> dict[str, object]:
    """Of an instance the step times of both ways, by seeds, and of the shorter search alone."""
    problem = ordered(instances()[name].problem("auto"))
    long, short, moved = [], [], []
    for seed in seeds:
        long.append(place(problem, "auto", seconds, seed).step_time)
        first = place(problem, "auto", (1 - RANKS_SHARE) * seconds, seed)
        short.append(first.step_time)
        moved.append(reordered(first, RANKS_SHARE * seconds, seed).step_time)
    return {"instance": name, "order": problem.order, "long": long, "short": short, "moved": moved}


def markdown(rows: list[dict[str, object]]) -> str:
    """A row an instance, ratios to the search that had all of the time; and their means."""
    each = [
        [np.mean(row[kind]) / np.mean(row["long"]) for kind in ("moved", "short")]  # type: ignore[arg-type]
        for row in rows
    ]
    cells = [
        [f"`{row['instance']}`", str(row["order"]), f"{1e3 * np.mean(row['long']):.2f} ms",  # type: ignore[arg-type]
         *(f"{value:.3f}" for value in values)]
        for row, values in zip(rows, each, strict=True)
    ]  # fmt: skip
    means = [f"{value:.3f}" for value in np.exp(np.log(each).mean(axis=0))]
    return table(HEADER, [*cells, ["geometric mean", "", "", *means]])


def main() -> None:
    """Runs the study."""
    wanted = command_line("ranks", "one instance, a second").parse_args()
    names = [name for name, each in instances().items() if each.source.endswith("_m8")]
    seeds, seconds = (range(1), 1.0) if wanted.quick else (SEEDS, SECONDS)
    rows = [study(name, seeds, seconds) for name in names[: 1 if wanted.quick else None]]
    document = {"machine": machine(), "seconds": seconds, "rows": rows}
    save("ranks", document, markdown(rows), results_folder(wanted.quick))


if __name__ == "__main__":
    main()
