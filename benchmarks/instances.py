"""Thirty small problems with names and proven optima: `python -m benchmarks.instances`.

A name says it all: `training-9-three-shared` is a training step of nine layers on three equal
devices with one bus. The command proves the optimum of each with `exact`. As in PyVRP's benchmarks,
the searches are then judged by their gaps to these, over several seeds. `results/instances.json`
has both, `results/instances.md` the table; about half an hour.

Ops take 1 to 10 ms on a device of kind `gpu` and a half to 4 times that on one of kind `cpu`, but
some take no time; an op's output has 1 to 10 MB and all of its consumers read it. A group is one
op, or one layer of a training step.
"""

import json
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.one_core import side_by_side
from benchmarks.output import RESULTS, machine, save, table_of
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
    """Layers forward, their gradients backward, an update each.

    Layer i is ops 3i to 3i + 2: forward, gradient, update. It reads one or two of the three
    layers before it; its gradient reads those of its readers and what the layer itself read, kept
    since then.
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


def family_graph(name: str, family: str, size: int, rng: np.random.Generator) -> ComputationGraph:
    """A graph of a family with random costs; `size` ops, or layers of three of `training`."""
    sources, targets = np.array(FAMILIES[family](size, rng)).T
    layers = family == "training"
    count = 3 * size if layers else size
    op = np.arange(count)
    seconds = rng.uniform(1e-3, 1e-2, count)
    seconds[op % 3 == 2 if layers else rng.random(count) < 0.1] = 0.0
    producers, tensor = np.unique(sources, return_inverse=True)
    return ComputationGraph(
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


def search(task: tuple[str, str, int, float]) -> dict[str, Any]:
    """Searches an instance for as long as the method is given.

    Args:
        task: instance, method, seed, and the optimum in seconds.

    Returns:
        `gap`, how much slower than the optimum the placement is, as a share, infinite if it does
        not fit in memory; `evaluations`, placements simulated in all; `found_after`, placements
        simulated until the best one was met; `seconds` of one core; and `method` and `seed`.
    """
    name, method, seed, optimum = task
    budget = SEARCH_SECONDS[method]
    placement = place(instance(name), method, budget, seed, clock=time.process_time)
    return {
        "method": method,
        "seed": seed,
        "gap": placement.step_time / optimum - 1 if placement.feasible else np.inf,
        "evaluations": placement.evaluations,
        "found_after": placement.trace[-1][0] if placement.trace else placement.evaluations,
        "seconds": round(placement.wall_seconds, 3),
    }


def run() -> int:
    """Proves the optima, searches, writes both; exit status 1 where one was not proven in time."""
    rows = _prove()
    if len(rows) < len(NAMES):
        return 1
    keys = product(rows, SEARCH_SECONDS, SEEDS)  # method by method, seed by seed
    tasks = [(row["instance"], method, seed, row["optimum"]) for row, method, seed in keys]
    searches: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (name, method, seed, _), found in zip(tasks, side_by_side(search, tasks), strict=True):
        print(f"{name}: {method}, seed {seed}: {found['gap']:.2%}", flush=True)
        searches[name].append(found)
    document = {
        "machine": machine(),
        "search_seconds": SEARCH_SECONDS,
        "rows": [{**row, "searches": searches[row["instance"]]} for row in rows],
    }
    save("instances", document, markdown(document["rows"]), indent=1)
    return 0


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """How near to the optima the methods came, as a table."""
    searches = pd.json_normalize(rows, "searches", "instance")
    lines = []
    for method, own in searches.groupby("method", sort=False):
        worst = own.groupby("instance")["gap"].max()
        middle = own.median(numeric_only=True)
        lines.append({
            "": f"`{method}`",
            "instances": f"{(worst <= NEAR).sum()} of {len(worst)}",
            "searches": f"{(own['gap'] <= NEAR).sum()} of {len(own)}",
            "largest gap": f"{worst.max():.2%}",
            "placements": f"{middle['evaluations']:,.0f}",
            "until the best": f"{middle['found_after']:,.0f}",
        })  # fmt: skip
    return table_of(lines)


def _prove() -> list[dict[str, Any]]:
    """Rows of the instances up to the first that is not proven in time."""
    rows: list[dict[str, Any]] = []
    place(instance(NAMES[0]), "exact")  # compiles
    for name in NAMES:
        found = place(instance(name), "exact", PROOF_SECONDS)
        seconds = round(found.wall_seconds, 3)
        print(f"{name}: {found.step_time * 1e3:.3f} ms, {seconds:.2f} s", flush=True)
        if found.lower_bound < found.step_time * (1 - 1e-8):
            print(f"{name}: not proven: no placement is below {found.lower_bound} s")
            break
        rows.append({
            "instance": name,
            "ops": found.problem.graph.num_ops,
            "groups": found.problem.num_groups,
            "devices": found.problem.num_devices,
            "optimum": found.step_time,
            "feasible": found.feasible,
            "placement": "".join(map(str, found.devices.tolist())),
            "evaluations": found.evaluations,
            "wall_seconds": seconds,
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    sys.exit(run())
