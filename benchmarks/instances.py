"""Thirty small problems with names and proven optima: `python -m benchmarks.instances`.

A name says it all: `training-9-three-shared` is a training step of nine layers on three equal
devices with one bus. The command proves the optimum of each with `exact`. As in PyVRP's benchmarks,
the searches are then judged by their gaps to these, over several seeds. `results/instances.json`
has both, `results/instances.md` the table; about half an hour.
"""

import json
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.families import family_graph
from benchmarks.one_core import side_by_side
from benchmarks.output import RESULTS, machine, save, table_of
from placeto import Channel, Cluster, Device, PlacementProblem, place, simulate
from placeto.heuristics.initial import all_on
from placeto.placement import Placement

PROOF_SECONDS = 120.0
# Of one core, for each search.
SEARCH_SECONDS = {"annealing": 1.0, "colocrl": 10.0, "hierarchical": 10.0, "placeto-2019": 10.0}
SEEDS = (0, 1, 2)
NEAR = 0.02  # of the optimum
LAUNCH_SECONDS = 5.7e-6
# bytes/s: an output takes 0.1 to 1 ms, a third of an op's time, or as long as an op.
BANDWIDTH = {"ample": 10e9, "unequal": 10e9, "tight": 10e9, "shared": 3e9, "multicast": 3e9,
             "scarce": 1e9}  # fmt: skip
TIGHT = 0.65  # of what the whole graph needs on one device
NAMES = (
    "chain-12-two-unequal", "chain-11-three-unequal", "chain-12-two-tight",
    "chain-10-three-tight", "chain-9-four-scarce", "fork-12-two-ample", "fork-11-three-shared",
    "fork-10-four-multicast", "fork-12-two-tight", "fork-11-three-unequal",
    "diamonds-12-two-shared", "diamonds-11-three-multicast", "diamonds-9-four-unequal",
    "diamonds-11-three-tight", "diamonds-10-four-ample", "layered-12-two-multicast",
    "layered-11-three-ample", "layered-10-four-scarce", "layered-12-two-unequal",
    "layered-11-three-tight", "series_parallel-12-two-scarce", "series_parallel-11-three-shared",
    "series_parallel-10-four-ample", "series_parallel-12-three-unequal",
    "series_parallel-12-four-multicast", "training-12-two-ample", "training-10-three-shared",
    "training-9-four-multicast", "training-12-two-tight", "training-10-three-unequal",
)  # fmt: skip


def instance(name: str) -> PlacementProblem:
    """The problem of a name: family, ops (layers of `training`), devices, what they are like."""
    family, size, devices, network = name.split("-")
    graph = family_graph(name, family, int(size), np.random.default_rng(zlib.crc32(name.encode())))
    count = {"two": 2, "three": 3, "four": 4}[devices]
    problem = PlacementProblem(graph, _cluster(count, network), "papers")
    if network != "tight":
        return problem
    whole = simulate(problem, all_on(problem, 0)).peak_memory[0]
    return PlacementProblem(graph, _cluster(count, network, int(TIGHT * whole)), "papers")


def optima() -> dict[str, float]:
    """Instance -> seconds of its best placement, from the committed results."""
    rows = json.loads((RESULTS / "instances.json").read_text())["rows"]
    return {row["instance"]: row["optimum"] for row in rows}


def _cluster(count: int, network: str, memory_bytes: int = 10**12) -> Cluster:
    """`count` devices; the last is a CPU where they are `unequal`.

    `shared` is one bus, `multicast` one channel a device, else there is one a pair.
    """
    names = tuple(f"device_{index}" for index in range(count))
    ends: list[tuple[tuple[str, ...], tuple[str, ...]]]
    ends = [((a,), (b,)) for a in names for b in names if a != b]
    if network == "shared":
        ends = [(names, names)]
    elif network == "multicast":
        ends = [((a,), tuple(b for b in names if b != a)) for a in names]
    kinds = ["gpu"] * (count - 1) + ["cpu" if network == "unequal" else "gpu"]
    channel = partial(
        Channel,
        bandwidth=BANDWIDTH[network],
        latency_seconds=1e-5,
        overhead_seconds=25e-6,
        multicast=network == "multicast",
    )
    return Cluster(
        f"{count}-{network}",
        tuple(
            Device(name, kind, memory_bytes, LAUNCH_SECONDS)
            for name, kind in zip(names, kinds, strict=True)
        ),
        tuple(channel(f"channel_{index}", *pair) for index, pair in enumerate(ends)),
    )


class Search(NamedTuple):
    """One search of an instance.

    Attributes:
        method: the placer.
        seed: its seed.
        gap: how much slower than the optimum its placement is, as a share; infinite if it does not
            fit in memory.
        evaluations: placements simulated in all.
        found_after: placements simulated until the best one was met.
        seconds: of one core, in all.
    """

    method: str
    seed: int
    gap: float
    evaluations: int
    found_after: int
    seconds: float


def search(task: tuple[str, str, int, float]) -> Search:
    """Searches an instance for as long as the method is given.

    Args:
        task: instance, method, seed, and the optimum in seconds.
    """
    name, method, seed, optimum = task
    budget = SEARCH_SECONDS[method]
    placement = place(instance(name), method, budget, seed, clock=time.process_time)
    return Search(
        method,
        seed,
        placement.step_time / optimum - 1 if placement.feasible else np.inf,
        placement.evaluations,
        placement.trace[-1][0] if placement.trace else placement.evaluations,
        round(placement.wall_seconds, 3),
    )


def run() -> int:
    """Proves the optima, searches, writes both; exit status 1 where one was not proven in time."""
    rows = _prove()
    if len(rows) < len(NAMES):
        return 1
    searches = _search_all({row["instance"]: row["optimum"] for row in rows})
    for row in rows:
        row["searches"] = [found._asdict() for found in searches[row["instance"]]]
    head = {"command": "python -m benchmarks.instances", "machine": machine()}
    document = {**head, "search_seconds": SEARCH_SECONDS, "rows": rows}
    text = markdown([found for row in searches.values() for found in row])
    save("instances", document, text, indent=1)
    return 0


def markdown(searches: Sequence[Search]) -> str:
    """How near to the optima the methods came, as a table."""
    rows = []
    for method in SEARCH_SECONDS:
        own = [found for found in searches if found.method == method]
        gaps = [found.gap for found in own]
        worst = [max(gaps[first : first + len(SEEDS)]) for first in range(0, len(own), len(SEEDS))]
        rows.append({
            "": f"`{method}`",
            "instances": f"{sum(gap <= NEAR for gap in worst)} of {len(worst)}",
            "searches": f"{sum(gap <= NEAR for gap in gaps)} of {len(gaps)}",
            "largest gap": f"{max(gaps):.2%}",
            "placements": f"{median(found.evaluations for found in own):,.0f}",
            "until the best": f"{median(found.found_after for found in own):,.0f}",
        })  # fmt: skip
    return table_of(rows)


def _search_all(best: Mapping[str, float]) -> dict[str, list[Search]]:
    """Instance -> its searches, method by method, seed by seed; two run at once."""
    keys = product(best, SEARCH_SECONDS, SEEDS)
    tasks = [(name, method, seed, best[name]) for name, method, seed in keys]
    searches: dict[str, list[Search]] = {name: [] for name in best}
    for (name, *_), found in zip(tasks, side_by_side(search, tasks), strict=True):
        print(f"{name}: {found.method}, seed {found.seed}: {found.gap:.2%}", flush=True)
        searches[name].append(found)
    return searches


def _prove() -> list[dict[str, Any]]:
    """Rows of the instances up to the first that is not proven in time."""
    rows = []
    place(instance(NAMES[0]), "exact")  # compiles
    for name in NAMES:
        placement = place(instance(name), "exact", PROOF_SECONDS)
        row = _row(name, placement)
        print(f"{name}: {row['optimum'] * 1e3:.3f} ms, {row['wall_seconds']:.2f} s", flush=True)
        if placement.lower_bound < placement.step_time * (1 - 1e-8):
            print(f"{name}: not proven: no placement is below {placement.lower_bound} s")
            break
        rows.append(row)
    return rows


def _row(name: str, placement: Placement) -> dict[str, Any]:
    problem = placement.problem
    return {
        "instance": name,
        "ops": problem.graph.num_ops,
        "groups": problem.num_groups,
        "devices": problem.num_devices,
        "optimum": placement.step_time,
        "feasible": placement.feasible,
        "placement": "".join(map(str, placement.devices.tolist())),
        "evaluations": placement.evaluations,
        "wall_seconds": round(placement.wall_seconds, 3),
    }


if __name__ == "__main__":
    sys.exit(run())
