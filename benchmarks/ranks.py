"""What moves of ranks win: `python -m benchmarks.ranks`.

The named instances of several microbatches, and the steps that `benchmarks.pipelines` has
calibrated on two workers: from what `auto` finds in eighteen seconds, two more of moves of ranks,
as `placeto place` does, or two more of the search that moves groups. It takes twelve minutes.
Writes `results/ranks.json` and `results/ranks.md`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import CALIBRATED
from benchmarks.output import RESULTS, command_line, machine, results_folder, save, table
from benchmarks.pipelines import AUTO, best
from placeto import PlacementProblem, load_cluster, load_graph
from placeto.placers import place
from placeto.placers.ordering import RANKS_SHARE, ordered, reordered
from placeto.support.files import read_json
from placeto.zoo.instances import instances

SEEDS, SECONDS = range(2), 20.0
HEADER = ["step", "devices", "order", "`auto`", "and moves of ranks", "and moves of groups"]


def named() -> Iterator[tuple[str, PlacementProblem]]:
    """The instances of several microbatches."""
    for name, each in instances().items():
        if each.source.endswith("_m8"):
            yield name, each.problem("auto")


def calibrated(folder: Path) -> Iterator[tuple[str, PlacementProblem]]:
    """Steps that were measured, in so many microbatches, from two, as are best for `auto`."""
    for name, found in read_json(RESULTS / "pipelines.json")["models"].items():
        several = {count: step for count, step in found["steps"].items() if count != "1"}
        count = best({"steps": several}, AUTO)[0]
        cluster = folder / name / CALIBRATED
        graph = load_graph(cluster.parent / f"{name}_{count}.json.gz")
        yield f"{name}, M = {count}", PlacementProblem(graph, load_cluster(cluster), "auto")


def study(
    name: str, problem: PlacementProblem, seeds: range = SEEDS, seconds: float = SECONDS
) -> dict[str, Any]:
    """Of a step the simulated seconds by seeds: as found, and with either kind of moves."""
    problem = ordered(problem)
    found: dict[str, Any] = {"step": name, "devices": problem.num_devices, "order": problem.order}
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
    cells = []
    for row, values in zip(rows, each, strict=True):
        auto = f"{1e3 * np.mean(row['auto']):.2f} ms"
        ratios = (f"{value:.3f}" for value in values)
        cells.append([f"`{row['step']}`", str(row["devices"]), row["order"], auto, *ratios])
    for what, kept in (("two devices", True), ("more", False)):
        logs = [np.log(own) for row, own in zip(rows, each, strict=True)
                if (row["devices"] == 2) == kept]  # fmt: skip
        if logs:
            means = [f"{value:.3f}" for value in np.exp(np.mean(logs, axis=0))]
            cells.append([f"geometric mean, {what}", "", "", "", *means])
    return table(HEADER, cells)


def main() -> None:
    """Runs the study."""
    parser = command_line("ranks", "one instance, two seconds")
    parser.add_argument("--folder", type=Path, default=Path("build/pipelines"))
    wanted = parser.parse_args()
    if wanted.quick:
        rows = [study(*next(named()), range(1), 2.0)]
    else:
        rows = [study(*each) for each in (*named(), *calibrated(wanted.folder))]
    save(
        "ranks", {"machine": machine(), "rows": rows}, markdown(rows), results_folder(wanted.quick)
    )


if __name__ == "__main__":
    main()
