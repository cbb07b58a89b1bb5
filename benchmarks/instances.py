"""Thirty small problems with names and proven optima: `python -m benchmarks.instances`.

`training-9-three-shared` is a training step of nine layers on three equal devices with one bus.
`exact` proves the optima, by gaps to which the searches are judged. `results/instances.json` has
both, `results/instances.md` the table. Ops take 1 to 10 ms on a `gpu`, a half to 4 times that on a
`cpu`, or no time; an output has 1 to 10 MB. A group is one op, or one layer of a training step.
"""

import json
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.one_core import side_by_side
from benchmarks.output import RESULTS, machine, save, table
from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, place, simulate
from placeto.heuristics.initial import all_on

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
Edges = list[tuple[int, int]]


def chain(size: int, rng: np.random.Generator) -> Edges:
    """Each op reads the one before it."""
    return [(op - 1, op) for op in range(1, size)]


def fork(size: int, rng: np.random.Generator) -> Edges:
    """One op feeds branches of one or two ops, which the last op joins."""
    edges, op = [], 1
    while op < size - 1:
        length = min(int(rng.integers(1, 3)), size - 1 - op)
        edges += pairwise([0, *range(op, op + length), size - 1])
        op += length
    return edges


def diamonds(size: int, rng: np.random.Generator) -> Edges:
    """A chain of diamonds: one op, two or three that read it, one that joins them."""
    edges, top = [], 0
    while top < size - 1:
        bottom = min(top + int(rng.integers(3, 5)), size - 1)
        middle = range(top + 1, bottom)
        edges += [(top, op) for op in middle] + [(op, bottom) for op in middle]
        if not middle:
            edges.append((top, bottom))
        top = bottom
    return edges


def layered(size: int, rng: np.random.Generator) -> Edges:
    """Layers of three ops; each op reads one or two of the layer before."""
    edges = []
    for op in range(3, size):
        before = op - op % 3 - 3
        count = int(rng.integers(1, 3))
        edges += [(before + int(i), op) for i in sorted(rng.choice(3, count, replace=False))]
    return edges


def series_parallel(size: int, rng: np.random.Generator) -> Edges:
    """An edge that is split, by turns in series and in parallel, until there are enough ops."""
    edges = [(0, 1)]
    for op in range(2, size):
        source, target = edges[int(rng.integers(len(edges)))]
        if rng.random() < 0.5:
            edges.remove((source, target))
        edges += [(source, op), (op, target)]
    return edges


def training(size: int, rng: np.random.Generator) -> Edges:
    """Layers, each of ops 3i to 3i + 2: forward, gradient, update.

    It reads one or two of the three before it; its gradient those of its readers, and what it read.
    """
    edges = []
    last = set(range(size))
    for layer in range(1, size):
        back = rng.choice(3, int(rng.integers(1, 3)), replace=False) + 1
        for before in sorted({max(layer - int(step), 0) for step in back}):
            last.discard(before)
            edges += [(3 * before, 3 * layer), (3 * layer + 1, 3 * before + 1)]
            edges += [(3 * before, 3 * layer + 1)]
    edges += [(3 * layer, 3 * layer + 1) for layer in sorted(last)]
    return edges + [(3 * layer + 1, 3 * layer + 2) for layer in range(size)]


FAMILIES: dict[str, Callable[[int, np.random.Generator], Edges]] = {
    each.__name__: each for each in (chain, fork, diamonds, layered, series_parallel, training)
}


def instance(name: str) -> PlacementProblem:
    """The problem of a name: family, ops (layers of `training`), devices, what they are like."""
    family, length, devices, network = name.split("-")
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    sources, targets = np.array(FAMILIES[family](int(length), rng)).T
    layers = family == "training"  # of three ops
    count = 3 * int(length) if layers else int(length)
    op = np.arange(count)
    seconds = rng.uniform(1e-3, 1e-2, count)
    seconds[op % 3 == 2 if layers else rng.random(count) < 0.1] = 0.0
    producers, tensor = np.unique(sources, return_inverse=True)
    graph = ComputationGraph(
        name=name,
        op_names=[f"op_{number}" for number in range(count)],
        op_types=["Op" if cost else "Reshape" for cost in seconds.tolist()],
        op_seconds={"gpu": seconds, "cpu": seconds * rng.uniform(0.5, 4, count)},
        tensor_producer=producers,
        tensor_bytes=rng.integers(10**6, 10**7, len(producers)),
        edge_tensor=tensor,
        edge_consumer=targets,
        param_bytes=rng.integers(10**6, 10**8, count) * (op % 3 == 0 if layers else 1),
        colocation=op // 3 if layers else np.full(count, -1),
    )
    number = {"two": 2, "three": 3, "four": 4}[devices]
    problem = PlacementProblem(graph, _cluster(number, network), "papers")
    if network == "tight":
        whole = simulate(problem, all_on(problem, 0)).peak_memory[0]
        problem = replace(problem, cluster=_cluster(number, network, int(TIGHT * whole)))
    return problem


def optima() -> dict[str, float]:
    """Instance -> seconds of its best placement, from the committed results."""
    rows = json.loads((RESULTS / "instances.json").read_text())["rows"]
    return {row["instance"]: row["optimum"] for row in rows}


def _cluster(count: int, network: str, memory_bytes: int = 10**12) -> Cluster:
    """Devices with one bus (`shared`), a channel each (`multicast`), or one a pair."""
    names = [f"device_{index}" for index in range(count)]
    devices = [Device(name, "gpu", memory_bytes, LAUNCH_SECONDS) for name in names]
    if network == "unequal":
        devices[-1] = replace(devices[-1], kind="cpu")
    ends: list[tuple[Sequence[str], Sequence[str]]]
    ends = [([a], [b]) for a, b in permutations(names, 2)]
    if network == "shared":
        ends = [(names, names)]
    elif network == "multicast":
        ends = [([a], [b for b in names if b != a]) for a in names]
    how = (BANDWIDTH[network], 1e-5, 25e-6, network == "multicast")
    channels = [
        Channel(f"channel_{index}", tuple(sources), tuple(targets), *how)
        for index, (sources, targets) in enumerate(ends)
    ]
    return Cluster(f"{count}-{network}", tuple(devices), tuple(channels))


def search(task: tuple[str, str, int, float]) -> dict[str, Any]:
    """Searches an instance as its method is given seconds: how far from the optimum, how soon."""
    name, method, seed, optimum = task
    budget = SEARCH_SECONDS[method]
    placement = place(instance(name), method, budget, seed, clock=time.process_time)
    return {
        "method": method, "seed": seed,
        "gap": placement.step_time / optimum - 1 if placement.feasible else np.inf,
        "evaluations": placement.evaluations,
        "found_after": placement.trace[-1][0] if placement.trace else placement.evaluations,
        "seconds": round(placement.wall_seconds, 3),
    }  # fmt: skip


def run() -> int:
    """Proves the optima, searches, writes both; exit status 1 where one was not proven in time."""
    rows: list[dict[str, Any]] = []
    place(instance(NAMES[0]), "exact")  # compiles
    for name in NAMES:
        proof = place(problem := instance(name), "exact", PROOF_SECONDS)
        print(f"{name}: {proof.step_time * 1e3:.3f} ms, {proof.wall_seconds:.2f} s", flush=True)
        if proof.lower_bound < proof.step_time * (1 - 1e-8):
            print(f"{name}: not proven: no placement is below {proof.lower_bound} s")
            return 1
        rows.append({
            "instance": name, "ops": problem.graph.num_ops, "groups": problem.num_groups,
            "devices": problem.num_devices, "optimum": proof.step_time, "feasible": proof.feasible,
            "placement": "".join(map(str, proof.devices.tolist())),
            "evaluations": proof.evaluations, "wall_seconds": round(proof.wall_seconds, 3),
            "searches": [],
        })  # fmt: skip
    keys = list(product(rows, SEARCH_SECONDS, SEEDS))  # method by method, seed by seed
    tasks = [(row["instance"], method, seed, row["optimum"]) for row, method, seed in keys]
    for (row, method, seed), found in zip(keys, side_by_side(search, tasks), strict=True):
        print(f"{row['instance']}: {method}, seed {seed}: {found['gap']:.2%}", flush=True)
        row["searches"].append(found)
    document = {"machine": machine(), "search_seconds": SEARCH_SECONDS, "rows": rows}
    save("instances", document, markdown(rows), indent=1)
    return 0


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """How near to the optima the methods came, as a table."""
    searches = pd.json_normalize(rows, "searches", "instance")
    lines = []
    for method, own in searches.groupby("method", sort=False):
        worst, middle = own.groupby("instance")["gap"].max(), own.median(numeric_only=True)
        near = [f"{(gaps <= NEAR).sum()} of {len(gaps)}" for gaps in (worst, own["gap"])]
        placements = [f"{middle[key]:,.0f}" for key in ("evaluations", "found_after")]
        lines.append([f"`{method}`", *near, f"{worst.max():.2%}", *placements])
    header = ["", "instances", "searches", "largest gap", "placements", "until the best"]
    return table(header, lines)


if __name__ == "__main__":
    sys.exit(run())
