"""What a policy of pipelined steps is worth: `python -m benchmarks.pipelined_policy`.

On the test graphs of its family (`make families`), in 128 groups, on a cluster that the policy has
learned with, on another and on two CPU workers: greedy sweeps, sixteen drawn ones, and `auto` that
is guided by it, in one and in five seconds of one core's time. Beside it the policy of other steps,
a search without a policy, and run directories, `--policy NAME=DIR`. Takes a quarter of an hour;
`--quick` is one bundled graph. Writes `results/pipelined_policy.json` and `.md`.
"""

import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.one_core import side_by_side
from benchmarks.output import command_line, machine, results_folder, save, table_of
from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.search.settings import NO_POLICY, PIPELINED, SHIPPED
from placeto.zoo.folders import resolve

FAMILY, ORDER, GROUPS, SAMPLES = "family:pipelined", "eager-1f1b", 128, 16
CLUSTERS = ("k80x4", "v100x8-nvlink", "local-2")
QUICK = ("nmt_small_m8",)
SWEEPS: dict[str, dict[str, Any]] = {
    "greedy": {"decoding": "greedy"},
    f"{SAMPLES} drawn": {"decoding": "sampling", "samples": SAMPLES, "batches": 1},
}
ENDLESS = 600.0  # s, more than sweeps take

Task = tuple[str, str, str, str, tuple[float, ...]]  # graph, cluster, name and source of a policy


def run(task: Task) -> dict[str, float]:
    """By column the step time over the best single device's."""
    graph, cluster, _, policy, seconds = task
    problem = PlacementProblem(load_graph(graph), load_cluster(cluster), GROUPS, order=ORDER)
    found = {}
    if policy != NO_POLICY:
        for name, settings in SWEEPS.items():
            found[name] = place(
                problem, "placeto", ENDLESS, clock=time.process_time,
                settings=settings | {"policy": policy},
            )  # fmt: skip
    for budget in seconds:
        found[f"auto, {budget:g} s"] = place(
            problem, "auto", budget, clock=time.process_time, settings={"policy": policy}
        )
    single = place(problem, "single").step_time
    return {name: placement.step_time / single for name, placement in found.items()}


def markdown(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """A row a policy: the geometric means over the problems."""
    columns = list(dict.fromkeys(
        column for of in found.values() for ratios in of.values() for column in ratios
    ))  # fmt: skip
    rows = []
    for name, of in found.items():
        row = {"policy": f"`{name}`"}
        for column in columns:
            ratios = [ratios[column] for ratios in of.values() if column in ratios]
            row[column] = f"{np.exp(np.mean(np.log(ratios))):.4f}" if ratios else "-"
        rows.append(row)
    return table_of(rows)


def main() -> None:
    """Runs and writes all of it."""
    parser = command_line("pipelined_policy", "one graph, half a second; into `build`")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME=DIR")
    wanted = parser.parse_args()
    quick = wanted.quick
    graphs = QUICK if quick else [str(path) for path in resolve(FAMILY, "test")]
    clusters = CLUSTERS[:1] if quick else CLUSTERS
    seconds = (0.5,) if quick else (1.0, 5.0)
    policies = {name: name for name in (PIPELINED, SHIPPED, NO_POLICY)}
    policies |= dict(text.split("=", 1) for text in wanted.policy)
    tasks: list[Task] = [
        (*where, *policy, seconds)
        for where, policy in product(product(graphs, clusters), policies.items())
    ]
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in policies}
    for task, ratios in zip(tasks, side_by_side(run, tasks), strict=True):
        graph, cluster, name, *_ = task
        where = f"{Path(graph).name.partition('.')[0]} on {cluster}"
        print(f"{where}: {name}: {ratios}", file=sys.stderr, flush=True)
        found[name][where] = ratios
    document: dict[str, Any] = {"machine": machine(), "groups": GROUPS, "order": ORDER}
    save(
        "pipelined_policy", document | {"ratios": found}, markdown(found),
        results_folder(quick), indent=1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
