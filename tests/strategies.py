"""Hypothesis strategies for graphs, clusters, groupings and placements.

The numbers come from small grids, so that many things happen at the same instant, or are floats
that hardly ever meet.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem
from placeto.cluster import EndCost, Link
from placeto.graph import BACKWARD, FORWARD, UPDATE


def examples(number: int) -> settings:
    """So many random problems; a tenth in `make quick`, fifty times as many in `make test-deep`."""
    usual, these = settings.get_profile("ci").max_examples, settings().max_examples
    return settings(max_examples=max(number * these // usual, 1))


@dataclass(frozen=True)
class Scale:
    """What the costs of one example are drawn from."""

    seconds: st.SearchStrategy[float]
    bytes: st.SearchStrategy[int]
    bandwidth: st.SearchStrategy[float]
    delay: st.SearchStrategy[float]


GRID = Scale(
    seconds=st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 3.0]),
    bytes=st.sampled_from([0, 1, 1, 2, 4]),
    bandwidth=st.sampled_from([1.0, 2.0]),
    delay=st.sampled_from([0.0, 0.0, 1.0, 2.0]),
)
# Sums of tenths differ in their last bit with the order of their terms.
TENTHS = Scale(
    seconds=st.integers(0, 3).map(lambda n: n * 0.1),
    bytes=st.integers(0, 3),
    bandwidth=st.sampled_from([10.0, 3.0]),
    delay=st.integers(0, 2).map(lambda n: n * 0.1),
)
FLOATS = Scale(
    seconds=st.just(0.0) | st.floats(1e-7, 1e-3),
    bytes=st.integers(0, 10**7),
    bandwidth=st.floats(1e9, 1e10),
    delay=st.floats(0, 1e-4),
)
SCALES = st.sampled_from([GRID, GRID, TENTHS, FLOATS])
KINDS = ("fast", "slow")
# Meta of a graph whose devices are faster alone than beside others.
ALONE = {"costs": {"kinds": {"fast": {"alone": 0.75}, "slow": {"alone": 0.5}}}}


@st.composite
def graphs(draw: st.DrawFn, scale: Scale = GRID, max_ops: int = 60) -> ComputationGraph:
    """Random graphs with costs for the kinds `fast` (finite) and `slow` (sometimes infinite)."""
    num_ops = draw(st.integers(1, max_ops))
    # Each op reads outputs of ops before it: (how far back, which output).
    reads = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 2)), max_size=3)
    op = st.tuples(
        scale.seconds,
        scale.seconds | st.just(np.inf) if draw(st.integers(0, 3)) == 0 else scale.seconds,
        st.lists(scale.bytes, max_size=3),
        reads,
        st.sampled_from([0, 0, 1, 5]),
        st.sampled_from([0, 0, 2, 7]),
        st.sampled_from([-1] * 8 + [0, 1]),
    )
    ops = draw(st.lists(op, min_size=num_ops, max_size=num_ops))
    number = list(range(num_ops))
    if draw(st.booleans()):
        random.Random(draw(st.integers(0, 1000))).shuffle(number)
    rank = {new: old for old, new in enumerate(number)}
    rows = [ops[rank[op]] for op in range(num_ops)]

    producer, sizes, edges = [], [], []
    tensors: dict[tuple[int, int], int] = {}
    for old, (_, _, outputs, _, _, _, _) in enumerate(ops):
        for output, size in enumerate(outputs):
            tensors[old, output] = len(producer)
            producer.append(number[old])
            sizes.append(size)
    for old, (_, _, _, inputs, _, _, _) in enumerate(ops):
        for back, output in inputs:
            if old - back < 0:
                continue
            if (old - back, output) not in tensors:  # a control dependency
                tensors[old - back, output] = len(producer)
                producer.append(number[old - back])
                sizes.append(0)
            edges.append((tensors[old - back, output], number[old]))
    return ComputationGraph(
        name="random",
        op_names=[f"op{op}" for op in range(num_ops)],
        op_types=["Zero" if row[0] == 0 else "Work" for row in rows],
        op_seconds={
            "fast": np.array([row[0] for row in rows]),
            "slow": np.array([row[1] for row in rows]),
        },
        tensor_producer=np.array(producer, dtype=np.int64),
        tensor_bytes=np.array(sizes, dtype=np.int64),
        edge_tensor=np.array([tensor for tensor, _ in edges], dtype=np.int64),
        edge_consumer=np.array([consumer for _, consumer in edges], dtype=np.int64),
        param_bytes=np.array([row[4] for row in rows]),
        temp_bytes=np.array([row[5] for row in rows]),
        colocation=np.array([row[6] for row in rows]),
        meta=draw(st.sampled_from([{}, {}, ALONE])),
    )


@st.composite
def clusters(draw: st.DrawFn, scale: Scale = GRID, max_devices: int = 4) -> Cluster:
    """Random clusters; the first device is `fast`, so that every op can run somewhere."""
    count = draw(st.integers(1, max_devices))
    names = [f"d{index}" for index in range(count)]
    devices = tuple(
        Device(
            name=name,
            kind="fast" if name == "d0" else draw(st.sampled_from(KINDS)),
            memory_bytes=draw(st.sampled_from([0, 8, 40, 10**9])),
            launch_overhead_seconds=draw(scale.delay),
        )
        for name in names
    )
    layout = draw(st.sampled_from(["pair", "source", "destination", "bus", "mixed"]))
    served: list[tuple[list[str], list[str]]] = []
    if layout == "bus":
        served = [(names, names)]
    elif layout == "destination":
        served = [([n for n in names if n != name], [name]) for name in names]
    else:
        for name in names:
            others = [other for other in names if other != name]
            if layout == "source" or (layout == "mixed" and draw(st.booleans())):
                served.append(([name], others))
            else:
                served.extend(([name], [other]) for other in others)
    channels = tuple(
        Channel(
            name=f"c{index}",
            sources=tuple(sources),
            destinations=tuple(destinations),
            bandwidth=draw(scale.bandwidth),
            latency_seconds=draw(scale.delay),
            overhead_seconds=draw(scale.delay),
            multicast=draw(st.booleans()),
        )
        for index, (sources, destinations) in enumerate(served if count > 1 else [])
    )
    return Cluster("random", devices, channels)


@st.composite
def clusters_of_links(draw: st.DrawFn, scale: Scale = GRID) -> Cluster:
    """Random clusters with paths over shared links, and with ends that transfers keep."""
    cluster = draw(clusters(scale))
    links = tuple(
        Link(f"l{index}", draw(scale.bandwidth), draw(scale.delay))
        for index in range(draw(st.integers(0, 3)))
    )

    def costs() -> tuple[EndCost, ...]:
        sizes = draw(st.sampled_from([(), (0,), (0,), (0, 2), (1,), (1, 10**6)]))
        per_byte = st.just(0.0) | scale.bandwidth.map(lambda bandwidth: 1 / bandwidth)
        return tuple(EndCost(size, draw(scale.seconds), draw(per_byte)) for size in sizes)

    channels = []
    for channel in cluster.channels:
        names = [link.name for link in links]
        path = draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if links else []
        channel = replace(channel, multicast=channel.multicast and draw(st.booleans()))
        if path:
            channel = Channel(
                channel.name, channel.sources, channel.destinations,
                multicast=channel.multicast, path=tuple(path),
            )  # fmt: skip
        if not channel.multicast:
            channel = replace(channel, send=costs(), receive=costs())
        channels.append(channel)
    return Cluster("random", cluster.devices, tuple(channels), links=links)


@st.composite
def problems(
    draw: st.DrawFn,
    max_ops: int = 60,
    scales: st.SearchStrategy[Scale] = SCALES,
    made: Callable[[Scale], st.SearchStrategy[Cluster]] = clusters,
    ranked: bool = False,
) -> PlacementProblem:
    """Random problems, under any kind of grouping; in any order if `ranked`."""
    scale = draw(scales)
    graph = draw(graphs(scale, max_ops))
    cluster = draw(made(scale))
    grouping: Any = draw(st.sampled_from(["none", "none", "papers", "auto", 5, "array"]))
    if grouping == "array":
        grouping = draw(groupings(graph))
    order: Any = "fifo"
    if ranked:
        order = draw(st.sampled_from(["fifo", "critical-path", "ranks", "1f1b"]))
    if order == "1f1b":
        graph = draw(in_microbatches(graph))
    if order == "ranks":
        ranks = st.lists(st.integers(-2, 2), min_size=graph.num_ops, max_size=graph.num_ops)
        order = np.array(draw(ranks))
    return PlacementProblem(graph, cluster, grouping, order=order)


@st.composite
def in_microbatches(draw: st.DrawFn, graph: ComputationGraph) -> ComputationGraph:
    """The graph with microbatches of which none comes before a lower one, and any phases."""

    def column(*values: int) -> list[int]:
        drawn = st.lists(st.sampled_from(values), min_size=graph.num_ops, max_size=graph.num_ops)
        return draw(drawn)

    microbatch = np.zeros(graph.num_ops, dtype=np.int64)
    microbatch[graph.topological_order] = np.sort(column(0, 1, 2, 3, 4, 5))
    microbatch[np.array(column(0, 0, 1)) > 0] = -1
    microbatch[graph.topological_order[-1]] = 5
    return replace(graph, microbatch=microbatch, phase=column(FORWARD, FORWARD, BACKWARD, UPDATE))


@st.composite
def groupings(draw: st.DrawFn, graph: ComputationGraph) -> np.ndarray:
    """Random groups that keep together what must be."""
    label = st.integers(0, 9)
    labels = np.array(draw(st.lists(label, min_size=graph.num_ops, max_size=graph.num_ops)))
    labels = np.where(graph.colocation >= 0, 10 + graph.colocation, labels)
    return np.unique(labels, return_inverse=True)[1]


def placements(problem: PlacementProblem) -> st.SearchStrategy[list[int]]:
    """Random devices for the groups, those included that cannot run an op."""
    device = st.integers(0, problem.num_devices - 1)
    return st.lists(device, min_size=problem.num_groups, max_size=problem.num_groups)


@st.composite
def pinned(draw: st.DrawFn, max_ops: int = 20, **made: Any) -> PlacementProblem:
    """A random problem of which some groups are pinned to a device that they may be on."""
    problem = draw(problems(max_ops, **made))
    pins = {
        group: draw(st.sampled_from(np.flatnonzero(problem.allowed[group]).tolist()))
        for group in draw(st.sets(st.integers(0, problem.num_groups - 1), max_size=4))
    }
    return PlacementProblem(
        problem.graph, problem.cluster, problem.op_group, pins=pins, order=problem.order
    )


def allowed_placements(problem: PlacementProblem) -> st.SearchStrategy[list[int]]:
    """Random devices for the groups, of those that each may be on."""
    return st.tuples(
        *(st.sampled_from(np.flatnonzero(row).tolist()) for row in problem.allowed)
    ).map(list)


@st.composite
def placed(draw: st.DrawFn, max_ops: int = 60, **made: Any) -> tuple[PlacementProblem, list[int]]:
    """A random problem with a random placement."""
    problem = draw(problems(max_ops, **made))
    return problem, draw(placements(problem))


@st.composite
def large_placed(draw: st.DrawFn, max_ops: int = 200) -> tuple[PlacementProblem, list[int]]:
    """Like `placed`, with graphs from a drawn seed: up to `max_ops` ops at little cost."""
    scale = draw(SCALES)
    num_ops, seed = draw(st.integers(1, max_ops)), draw(st.integers(0, 2**32 - 1))
    grouping = draw(st.sampled_from(["none", "none", "papers", "auto", 12]))
    problem = PlacementProblem(
        _seeded_graph(random.Random(seed), scale, num_ops), draw(clusters(scale)), grouping
    )
    rng = np.random.default_rng(seed)
    return problem, rng.integers(0, problem.num_devices, problem.num_groups).tolist()


def _seeded_graph(rng: random.Random, scale: Scale, num_ops: int) -> ComputationGraph:
    def seconds() -> float:
        if rng.random() < zeros:
            return 0.0
        if scale is FLOATS:
            return rng.uniform(1e-7, 1e-3)
        return rng.randint(1, 3) * (0.1 if scale is TENTHS else 1.0)

    def size() -> int:
        return 0 if rng.random() < 0.3 else rng.randint(1, 10**7 if scale is FLOATS else 4)

    zeros, sources, reach = rng.random() * 0.8, rng.random() * 0.6, rng.choice([3, 12, num_ops])
    number = list(range(num_ops))
    if rng.random() < 0.3:
        rng.shuffle(number)
    producer, sizes, edges = [], [], []
    outputs: list[range] = []
    cost, slow_cost = np.zeros(num_ops), np.zeros(num_ops)
    for op in range(num_ops):
        is_source = op == 0 or rng.random() < sources
        cost[number[op]] = 0.0 if is_source and rng.random() < 0.8 else seconds()
        slow_cost[number[op]] = cost[number[op]] * rng.choice([1, 1, 2])
        if not is_source:
            for _ in range(rng.randint(1, 3)):
                before = rng.randint(max(0, op - reach), op - 1)
                edges.append((rng.choice(outputs[before]), number[op]))
        outputs.append(range(len(producer), len(producer) + rng.randint(1, 2)))
        for _ in outputs[-1]:
            producer.append(number[op])
            sizes.append(size())
    return ComputationGraph(
        name="seeded",
        op_names=[f"op{op}" for op in range(num_ops)],
        op_types=["Op"] * num_ops,
        op_seconds={"fast": cost, "slow": slow_cost},
        tensor_producer=np.array(producer, dtype=np.int64),
        tensor_bytes=np.array(sizes, dtype=np.int64),
        edge_tensor=np.array([tensor for tensor, _ in edges], dtype=np.int64),
        edge_consumer=np.array([consumer for _, consumer in edges], dtype=np.int64),
        param_bytes=np.array([rng.choice([0, 0, 1, 5]) for _ in range(num_ops)]),
        temp_bytes=np.array([rng.choice([0, 0, 2, 7]) for _ in range(num_ops)]),
        colocation=np.array([rng.choice([-1] * 8 + [0, 1]) for _ in range(num_ops)]),
    )
