"""Ways to decode the policy that ships, at equal seconds: `python -m benchmarks.decodings`.

Bundled graphs that it has not learned from, on clusters of equal devices, of unequal ones and of
two hosts. Each decoding has five seconds of one core's time; takes six minutes. `--quick` is two
problems, a second each. Writes `results/decodings.json` and `.md`.
"""

import sys
import time
from itertools import product
from typing import Any, get_args

import numpy as np

from benchmarks.one_core import side_by_side
from benchmarks.output import command_line, machine, results_folder, save, table_of
from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.placers.configs import Decoding

GRAPHS = ("inception_v3", "nasnet", "nmt", "nmt_4", "resnet50", "rnnlm", "transformer")
CLUSTERS = ("k80x2", "k80x4", "p100x2-k80x2", "p3.8xlarge-2")
GROUPS = 128  # as many as it has learned with
SECONDS = 5.0
DECODINGS = get_args(Decoding)


def decode(task: tuple[str, str, str, float]) -> float:
    """Step time of what a decoding finds, over the best single device's."""
    graph, cluster, decoding, seconds = task
    problem = PlacementProblem(load_graph(graph), load_cluster(cluster), GROUPS)
    single = place(problem, "single").step_time
    settings = {"decoding": decoding}
    found = place(problem, "placeto", seconds, clock=time.process_time, settings=settings)
    return found.step_time / single


def means(ratios: dict[str, dict[str, float]], clusters: tuple[str, ...]) -> dict[str, float]:
    """By decoding the geometric mean over the problems on some clusters."""
    return {
        name: float(np.exp(np.mean([
            np.log(ratio) for problem, ratio in of.items() if problem.split(" on ")[1] in clusters
        ])))
        for name, of in ratios.items()
    }  # fmt: skip


def markdown(ratios: dict[str, dict[str, float]]) -> str:
    """A row a decoding: on each cluster, on all, and how often none is better."""
    problems = list(next(iter(ratios.values())))
    clusters = tuple(dict.fromkeys(each.split(" on ")[1] for each in problems))
    best = {each: min(of[each] for of in ratios.values()) for each in problems}
    rows = []
    for name, of in ratios.items():
        cells = {f"`{each}`": f"{means(ratios, (each,))[name]:.4f}" for each in clusters}
        first = sum(of[each] <= best[each] * (1 + 1e-9) for each in problems)
        last = {"all": f"{means(ratios, clusters)[name]:.4f}", "best": f"{first} of {len(best)}"}
        rows.append({"decoding": f"`{name}`"} | cells | last)
    return table_of(rows)


def main() -> None:
    """Runs and writes all of it."""
    wanted = command_line("decodings", "two problems, a second each; into `build`").parse_args()
    quick = wanted.quick
    graphs, clusters = (GRAPHS[-1:], CLUSTERS[:2]) if quick else (GRAPHS, CLUSTERS)
    seconds = 1.0 if quick else SECONDS
    tasks = [(*each, seconds) for each in product(graphs, clusters, DECODINGS)]
    ratios: dict[str, dict[str, float]] = {name: {} for name in DECODINGS}
    for (graph, cluster, name, _), ratio in zip(tasks, side_by_side(decode, tasks), strict=True):
        print(f"{graph} on {cluster}: {name}: {ratio:.4f}", file=sys.stderr, flush=True)
        ratios[name][f"{graph} on {cluster}"] = ratio
    document: dict[str, Any] = {"machine": machine(), "groups": GROUPS, "seconds": seconds}
    save("decodings", document | {"ratios": ratios}, markdown(ratios), results_folder(quick))


if __name__ == "__main__":
    main()
