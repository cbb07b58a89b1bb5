"""What moves of ranks win: `python -m benchmarks.ranks`.

The named instances of several microbatches: from what `auto` finds in eighteen seconds, two more of
moves of ranks, as `placeto place` does, or two more of the search that moves groups. It takes seven
minutes. Writes `results/ranks.json` and `results/ranks.md`.
"""

from typing import Any

import numpy as np

from benchmarks.output import command_line, machine, results_folder, save, table
from placeto.placers import place
from placeto.placers.ordering import RANKS_SHARE, ordered, reordered
from placeto.zoo.instances import instances

SEEDS, SECONDS = range(2), 20.0
HEADER = ["instance", "order", "`auto`", "and moves of ranks", "and moves of groups"]


def study(name: str, seeds: range, seconds: float) -> dict[str, Any]:
    """Of an instance the step times by seeds: of the search, and with either kind of moves."""
    problem = ordered(instances()[name].problem("auto"))
    found: dict[str, Any] = {"instance": name, "order": problem.order}
    found |= {"auto": [], "ranks": [], "groups": []}
    rest = RANKS_SHARE * seconds
    for seed in seeds:
        auto = place(problem, "auto", seconds - rest, seed)
        more = place(problem, "auto", rest, seed, start=auto.devices)
        found["auto"].append(auto.step_time)
        found["ranks"].append(reordered(auto, rest, seed).step_time)
        found["groups"].append(more.step_time)
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    """A row an instance, ratios to what the search had found; and their means."""
    each = [
        [np.mean(np.divide(row[kind], row["auto"])) for kind in ("ranks", "groups")] for row in rows
    ]
    cells = [
        [f"`{row['instance']}`", row["order"], f"{1e3 * np.mean(row['auto']):.2f} ms",
         *(f"{value:.3f}" for value in values)]
        for row, values in zip(rows, each, strict=True)
    ]  # fmt: skip
    means = [f"{value:.3f}" for value in np.exp(np.log(each).mean(axis=0))]
    return table(HEADER, [*cells, ["geometric mean", "", "", *means]])


def main() -> None:
    """Runs the study."""
    wanted = command_line("ranks", "one instance, two seconds").parse_args()
    names = [name for name, each in instances().items() if each.source.endswith("_m8")]
    names, seeds, seconds = (names[:1], range(1), 2.0) if wanted.quick else (names, SEEDS, SECONDS)
    rows = [study(name, seeds, seconds) for name in names]
    document = {"machine": machine(), "seconds": seconds, "rows": rows}
    save("ranks", document, markdown(rows), results_folder(wanted.quick))


if __name__ == "__main__":
    main()
