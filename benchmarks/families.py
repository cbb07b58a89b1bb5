"""Small graphs of the shapes that placements are studied on, one op a group or one layer a group.

Ops take 1 to 10 ms on a device of kind `gpu` and a half to 4 times that on one of kind `cpu`, but
some take no time; an op's output has 1 to 10 MB and all of its consumers read it.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from placeto import ComputationGraph

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
