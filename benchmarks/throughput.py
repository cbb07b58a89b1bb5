"""The search for throughput against exact solvers: `python -m benchmarks.throughput`.

Random chains and DAGs of up to 16 groups, whose optima branch and bound proves: how many `auto`
finds, and annealing alone. Chains with skips, modules of branches and layers, of 300 groups: what
the search finds in ten seconds of a core, and what HiGHS finds and proves of a mixed integer
program in ten minutes. And the bound of bundled graphs on several hosts, over the work shared out.
It takes two hours of one core, and goes on where it was stopped. Writes `results/throughput.json`
and `results/throughput.md`.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from benchmarks.output import command_line, machine, results_folder, save, table
from placeto import (
    Channel,
    Cluster,
    ComputationGraph,
    Device,
    PlacementProblem,
    load_cluster,
    load_graph,
    place,
)
from placeto.bounds import throughput_bound
from placeto.cluster import EndCost
from placeto.simulation.loads import loads_of
from placeto.support.files import read_json, write_json
from placeto.zoo.synthetic import Edges, layered

BANDWIDTH = 1e9  # bytes/s
OP_SECONDS = (1e-3, 10e-3)
SECONDS = 10.0  # of one core, for a search
SOLVER_SECONDS = 600.0  # of the clock
PROOF_SECONDS = 120.0
ANNEALED = 20_000  # placements that annealing looks at
SEEDS = range(4)
SMALL = range(8, 17)  # groups
SAME = 1e-8  # of an optimum
GRAPHS = ("inception_v3", "resnet50", "cifar10_small_m8", "rnnlm", "nmt", "nmt_small_m8",
          "ptb_small_m8", "transformer", "transformer_small_m8")  # fmt: skip
CLUSTERS = ("p3.8xlarge-2", "n1-p100x2-4")
SEARCHES = ("auto", "annealing")
SMALL_HEADER = ["graphs", "problems", "proven", "`auto` optimal", "annealing optimal",
                "annealing, worst"]  # fmt: skip
LARGE_HEADER = ["problem", "proven", "bound", "HiGHS", "`stages`", "`auto`", "`auto` / HiGHS",
                "HiGHS, s"]  # fmt: skip
HOSTS_HEADER = ["graph", *(f"`{cluster}`" for cluster in CLUSTERS)]
Found = dict[str, dict[str, dict[str, Any]]]
Study = Callable[[PlacementProblem], dict[str, Any]]


def chain(size: int, rng: random.Random) -> Edges:
    """A chain."""
    return [(op, op + 1) for op in range(size - 1)]


def skips(size: int, rng: random.Random) -> Edges:
    """A chain of which every few ops one also feeds an op a few further on."""
    edges, op = set(chain(size, rng)), 0
    while op < size - 4:
        edges.add((op, op + rng.randint(2, 4)))
        op += rng.randint(2, 5)
    return sorted(edges)


def branches(size: int, rng: random.Random) -> Edges:
    """Modules of a few branches that are joined, one after the other."""
    edges: Edges = []
    fork = 0
    while fork < size - 1:
        join = min(fork + rng.randint(2, 5) + 1, size - 1)
        between = range(fork + 1, join)
        edges += [pair for op in between for pair in ((fork, op), (op, join))] or [(fork, join)]
        fork = join
    return edges


SHAPES: dict[str, Callable[[int, random.Random], Edges]] = {
    "chain": chain,
    "skips": skips,
    "branches": branches,
    "layered": layered,
}


def make_problem(
    shape: str, size: int, devices: int, share: float, *, ends: bool, seed: int = 0
) -> PlacementProblem:
    """A problem of equal devices; a transfer takes about `share` of an op.

    With `ends` a transfer keeps the devices at its ends as long as their channel; else every
    device has one outgoing channel, which serves all others at once.
    """
    rng = random.Random(f"{shape} {size} {devices} {seed}")
    edges = SHAPES[shape](size, rng)
    producers = sorted({source for source, _ in edges})
    tensor = {producer: number for number, producer in enumerate(producers)}
    largest = 2 * share * BANDWIDTH * sum(OP_SECONDS) / 2
    graph = ComputationGraph(
        f"{shape}-{size}",
        [f"op{op}" for op in range(size)],
        ["Op"] * size,
        {"k": np.array([rng.uniform(*OP_SECONDS) for _ in range(size)])},
        np.array(producers),
        np.array([int(largest * rng.random()) for _ in producers]),
        np.array([tensor[source] for source, _ in edges]),
        np.array([consumer for _, consumer in edges]),
    )
    names = [f"d{number}" for number in range(devices)]
    cost = (EndCost(0, 20e-6, 1 / BANDWIDTH),)
    channels = [
        Channel(f"{one}-{other}", (one,), (other,), BANDWIDTH, send=cost, receive=cost)
        for one in names
        for other in names
        if one != other
    ]
    if not ends:
        channels = [
            Channel(name, (name,), tuple({*names} - {name}), BANDWIDTH, 0.0, 25e-6, multicast=True)
            for name in names
        ]
    each = tuple(Device(name, "k", 2**40, 5e-6) for name in names)
    cluster = Cluster("ends" if ends else "multicast", each, tuple(channels))
    return PlacementProblem(graph, cluster, "none", objective="throughput")


PROBLEMS = {
    f"{shape}-300-{devices}-{'ends' if ends else 'multicast'}": make_problem(
        shape, 300, devices, share, ends=ends
    )
    for devices, ends, share in ((8, True, 0.5), (4, True, 0.3), (4, False, 0.3))
    for shape in ("skips", "branches", "layered")
}


def solve(problem: PlacementProblem, seconds: float) -> tuple[float, float]:
    """What HiGHS finds and proves: seconds a microbatch, and a lower bound; no paths of links.

    By x[g, d], whether a group is on a device, and y[f, s, d], whether a flow goes from one device
    to another, or y[f, s] where it leaves by a channel that is multicast. Memory does not count.
    """
    t = loads_of(problem)
    (groups, devices), scale = t.work.shape, float(t.work.max())
    multicast = bool(t.multicast.all())
    per_flow = devices if multicast else devices**2
    num_columns = groups * devices + len(t.sender) * per_flow + 1
    entries: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def constrain(least: float, terms: list[tuple[int, float]], most: float) -> None:
        entries.extend((len(low), column, value) for column, value in terms)
        low.append(least)
        high.append(most)

    loads: list[list[tuple[int, float]]] = [[] for _ in range(devices + len(t.kind))]
    for group in range(groups):
        own = [group * devices + device for device in range(devices)]
        constrain(1, [(column, 1) for column in own], 1)
        for device, column in enumerate(own):
            loads[device].append((column, float(t.work[group, device]) / scale))
    for flow, sender in enumerate(t.sender.tolist()):
        readers = t.readers[t.reader_start[flow] : t.reader_start[flow + 1]].tolist()
        first = groups * devices + flow * per_flow
        for source in range(devices):
            targets = [device for device in range(devices) if device != source]
            on_source = sender * devices + source
            if multicast:
                leaves = [(first + source, 1.0)]
                channel = int(t.channel_between[source, targets[0]])
                carried = float(t.costs[flow, t.kind[channel], 1]) / scale
                loads[devices + channel].append((first + source, carried))
            else:
                leaves = [(first + source * devices + target, 1.0) for target in targets]
            for reader in readers:
                there = reader * devices + source
                constrain(0, [*leaves, (on_source, -1), (there, 1)], np.inf)
            for target, (column, _) in zip(targets, leaves if not multicast else [], strict=False):
                for reader in readers:
                    terms = [(column, 1.0), (on_source, -1), (reader * devices + target, -1)]
                    constrain(-1, terms, np.inf)
                channel = int(t.channel_between[source, target])
                costs = (t.costs[flow, t.kind[channel]] / scale).tolist()
                for resource, cost in zip((source, devices + channel, target), costs, strict=True):
                    loads[resource].append((column, cost))
    for terms in loads:
        constrain(-np.inf, [*terms, (num_columns - 1, -1.0)], 0)
    row, column, value = zip(*entries, strict=True)
    integral = (np.arange(num_columns) < groups * devices).astype(int)
    above = np.ones(num_columns)
    above[-1] = np.inf
    answer = milp(
        np.eye(num_columns)[-1],
        constraints=LinearConstraint(
            coo_array((value, (row, column)), (len(low), num_columns)).tocsr(), low, high
        ),
        integrality=integral,
        bounds=Bounds(np.zeros(num_columns), above),
        options={"time_limit": seconds, "mip_rel_gap": 1e-6},
    )
    found = np.inf if answer.x is None else float(answer.fun) * scale
    return found, float(answer.mip_dual_bound or 0.0) * scale


def small_problems() -> Iterator[tuple[str, PlacementProblem]]:
    """Problems of few groups, by shape, devices, what transfers cost and seed."""
    for shape, devices, ends, seed in product(SHAPES, (2, 3, 4), (True, False), SEEDS):
        rng = random.Random(f"{shape} {devices} {ends} {seed}")
        size, share = rng.choice(SMALL), rng.choice((0.1, 0.3, 1.0))
        name = f"{shape}-{size}-{devices}-{'ends' if ends else 'multicast'}-{seed}"
        yield name, make_problem(shape, size, devices, share, ends=ends, seed=seed)


def searched_for(problem: PlacementProblem, method: str, seconds: float) -> float:
    """Seconds a microbatch that a method finds in so many seconds of one core."""
    return place(problem, method, seconds, clock=time.process_time).seconds


def judged(problem: PlacementProblem) -> dict[str, Any]:
    """The optimum, whether it is proven, and what searches find, in seconds a microbatch."""
    exact = place(problem, "exact", PROOF_SECONDS)
    found: dict[str, Any] = {"optimum": exact.seconds, "devices": problem.num_devices}
    found["proven"] = exact.lower_bound >= exact.seconds * (1 - SAME)
    found["auto"] = searched_for(problem, "auto", SECONDS)
    settings = {"max_evaluations": ANNEALED}
    found["annealing"] = place(problem, "annealing", np.inf, settings=settings).seconds
    return found


def compared(problem: PlacementProblem, seconds: float, solver: float) -> dict[str, float]:
    """What methods find in so many seconds of a core, and HiGHS in so many of the clock.

    `solver` of these is what HiGHS had of a core: a machine may do other things.
    """
    began = time.process_time()
    solved, proven = solve(problem, solver)
    spent = time.process_time() - began
    found = {method: searched_for(problem, method, seconds) for method in ("stages", "auto")}
    return {"solver": spent, "highs": solved, "proven": proven, **found}


def on_hosts() -> Iterator[tuple[str, PlacementProblem]]:
    """Bundled graphs on clusters of several hosts."""
    for graph, cluster in product(GRAPHS, CLUSTERS):
        problem = PlacementProblem(load_graph(graph), load_cluster(cluster), objective="throughput")
        yield f"{graph}, {cluster}", problem


def bounded(problem: PlacementProblem) -> dict[str, float]:
    """Seconds a microbatch of equal devices that share out the work, and the bound."""
    shared = float(loads_of(problem).work[:, 0].sum()) / problem.num_devices
    return {"shared": shared, "bound": throughput_bound(problem)}


def small_rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """A row a shape: problems, proven optima, and how many of these searches find."""
    rows = []
    for shape in SHAPES:
        every = [row for name, row in found.items() if name.startswith(f"{shape}-")]
        proven = [row for row in every if row["proven"]]
        if proven:
            over = {m: [row[m] / row["optimum"] - 1 for row in proven] for m in SEARCHES}
            counts = [str(sum(each <= SAME for each in over[m])) for m in SEARCHES]
            worst = f"{max(over['annealing']):.2%}"
            rows.append([shape, str(len(every)), str(len(proven)), *counts, worst])
    return rows


def large_rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """A row a problem: the solver's seconds, and all over what is proven, by it or by the bound."""
    rows = []
    for name, row in found.items():
        least = max(row["proven"], row["bound"])
        figures = (f"{row[what] / least:.4f}" for what in ("bound", "highs", "stages", "auto"))
        rows.append([
            f"`{name}`", f"{1e3 * least:.2f} ms", *figures,
            f"{row['auto'] / row['highs']:.4f}", f"{row['solver']:.0f}",
        ])  # fmt: skip
    return rows


def host_rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """A row a graph: by cluster the bound, over the work shared out."""
    rows = []
    for graph in GRAPHS:
        of_graph = [found[f"{graph}, {cluster}"] for cluster in CLUSTERS]
        cells = (f"{row['bound'] / row['shared']:.3f}" for row in of_graph)
        rows.append([f"`{graph}`", *cells])
    return rows


def markdown(found: Found) -> str:
    """The three tables."""
    return "\n".join(
        table(header, rows(found[part]))
        for part, header, rows in (
            ("small", SMALL_HEADER, small_rows),
            ("large", LARGE_HEADER, large_rows),
            ("hosts", HOSTS_HEADER, host_rows),
        )
    )


def main() -> None:
    """Runs the study."""
    numba.set_num_threads(1)
    quick = command_line("throughput", "a problem of each kind").parse_args().quick
    kept = Path("build") / "throughput" / f"found{'-quick' * quick}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    found: Found = {"small": {}, "large": {}}
    if kept.exists():
        found = read_json(kept)
    seconds, solver, most = (1.0, 1.0, 1) if quick else (SECONDS, SOLVER_SECONDS, None)
    parts: dict[str, tuple[Iterator[tuple[str, PlacementProblem]], Study]] = {
        "large": (iter(PROBLEMS.items()), lambda problem: compared(problem, seconds, solver)),
        "small": (small_problems(), judged),
    }
    for part, (problems, study) in parts.items():
        for name, problem in islice(problems, most):
            if name not in found[part]:
                print(name, file=sys.stderr, flush=True)
                found[part][name] = study(problem)
                write_json(kept, found)
    for name, row in found["large"].items():
        row["bound"] = throughput_bound(PROBLEMS[name])
    found["hosts"] = {name: bounded(problem) for name, problem in on_hosts()}
    document = {"machine": machine(), "seconds": seconds, "annealed": ANNEALED, **found}
    save("throughput", document, markdown(found), results_folder(quick))


if __name__ == "__main__":
    main()
