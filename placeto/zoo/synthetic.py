"""Small graphs of the shapes that placements are studied on, made without TensorFlow."""

import random
from collections.abc import Callable

import numpy as np

from placeto.graph import ComputationGraph
from placeto.zoo.draws import drawn

Edges = list[tuple[int, int]]

SMALLEST, LARGEST = 30, 200  # ops
# How long an op takes on a kind of the presets relative to a K80: the ratio of the peaks that
# `extraction.device_kinds` has from the data sheets, rounded.
SLOWDOWN = dict(cpu=2.1, k40=0.65, k80=1.0, p100=0.3, v100=0.18, a100=0.14, h100=0.042)


def layered(size: int, rng: random.Random) -> Edges:
    """Layers of two to five ops; each op reads one or two of the layer before."""
    edges: Edges = []
    before, op = range(1), 1
    while op < size:
        layer = range(op, min(op + drawn(range(2, 6), rng), size))
        for reader in layer:
            edges += sorted({(drawn(before, rng), reader) for _ in range(drawn((1, 2), rng))})
        before, op = layer, layer.stop
    return edges


def series_parallel(size: int, rng: random.Random) -> Edges:
    """An edge that is split, by turns in series and in parallel, until there are enough ops."""
    edges = [(0, 1)]
    for op in range(2, size):
        edge = drawn(edges, rng)
        if rng.random() < 0.5:
            edges.remove(edge)
        edges += [(edge[0], op), (op, edge[1])]
    return edges


def random_edges(size: int, rng: random.Random) -> Edges:
    """Each op reads one to three of the dozen before it."""
    edges: Edges = []
    for op in range(1, size):
        before = range(max(op - 12, 0), op)
        edges += sorted({(drawn(before, rng), op) for _ in range(drawn((1, 2, 3), rng))})
    return edges


STYLES: dict[str, Callable[[int, random.Random], Edges]] = {
    "layered": layered,
    "series_parallel": series_parallel,
    "random": random_edges,
}


def synthetic_graph(style: str, number: int, name: str) -> ComputationGraph:
    """A graph of 30 to 200 ops with random costs for every device kind of the presets.

    An op takes 1 to 10 ms on a K80, one in ten takes no time; its output has 0.5 to 5 MB, and all
    of its consumers read it. Other kinds are faster or slower than a K80 by their peaks, give or
    take a half for each op. The same style, of `STYLES`, and number give the same graph.
    """
    rng = random.Random(f"{style} {number}")
    size = drawn(range(SMALLEST, LARGEST + 1), rng)
    edges = STYLES[style](size, rng)
    seconds = [0.0 if rng.random() < 0.1 else 1e-3 + 9e-3 * rng.random() for _ in range(size)]
    producers = sorted({source for source, _ in edges})
    tensor_of = {producer: tensor for tensor, producer in enumerate(producers)}
    return ComputationGraph(
        name=name,
        op_names=[f"op_{op}" for op in range(size)],
        op_types=["Op" if cost else "Reshape" for cost in seconds],
        op_seconds={
            kind: np.array([cost * slowdown * (0.5 + rng.random()) for cost in seconds])
            if kind != "k80"
            else np.array(seconds)
            for kind, slowdown in SLOWDOWN.items()
        },
        tensor_producer=np.array(producers),
        tensor_bytes=np.array([drawn(range(500_000, 5_000_001), rng) for _ in producers]),
        edge_tensor=np.array([tensor_of[source] for source, _ in edges]),
        edge_consumer=np.array([consumer for _, consumer in edges]),
        param_bytes=np.array([drawn(range(10_000_000), rng) for _ in range(size)]),
        meta={"kind": "synthetic"},
    )
