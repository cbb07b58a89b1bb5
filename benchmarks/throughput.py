"""The search for throughput against a mixed integer program, on chains with skips and branches.

`python -m benchmarks.throughput [--seconds 10] [--solver 200] [--only NAME]` prints, of each
problem, the seconds a microbatch that the search and HiGHS find, over what all devices take if they
share out the work.
"""

import argparse
import random
from collections.abc import Callable

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, place
from placeto.bounds import throughput_bound
from placeto.cluster import EndCost
from placeto.simulation.loads import loads_of
from placeto.zoo.synthetic import Edges, layered

BANDWIDTH = 1e9  # bytes/s
OP_SECONDS = (1e-3, 10e-3)


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
    for shape in ("skips", "branches", "layered")
    for devices, ends, share in ((4, False, 0.3), (4, True, 0.3), (8, True, 0.5))
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


def main() -> None:
    """Prints a line a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--solver", type=float, default=200.0)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    arguments = parser.parse_args()
    for name in arguments.only:
        problem = PROBLEMS[name]
        shared = throughput_bound(problem)
        line = [f"{name:22}"]
        for method in ("stages", "auto"):
            found = place(problem, method, arguments.seconds).seconds
            line.append(f"{method} {found / shared:.4f}")
        if arguments.solver > 0:
            solved, proven = solve(problem, arguments.solver)
            line.append(f"HiGHS {solved / shared:.4f}, none below {proven / shared:.4f}")
        print(*line, sep="  ", flush=True)


if __name__ == "__main__":
    main()
