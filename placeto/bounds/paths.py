"""Heads: when each op can start at the earliest, if its device is of a given class."""

import numpy as np

from placeto.bounds.relaxed import Relaxed
from placeto.support.arrays import Floats
from placeto.support.jit import inner, njit


@njit(cache=True)
def path_heads(relaxed: Relaxed) -> Floats:  # pragma: no cover
    """(num_ops, num_classes) seconds from paths alone; infinite where an op is not allowed.

    For one edge the producer is on the consumer's device and holds it for its launch overhead, or
    it is on another one and its tensor is transferred; ops of one group are on one device. The
    least of these, over the classes that the producer can be on, is what the edge delays its
    consumer by at least; the longest path of such delays holds for every placement.
    """
    heads = np.zeros_like(relaxed.seconds)
    for op in range(len(heads)):
        raise_head(relaxed, heads, op)
    return heads


@inner(cache=True)
def raise_head(relaxed: Relaxed, heads: Floats, op: int) -> None:  # pragma: no cover
    """Raises an op's heads to what its inputs and their heads imply."""
    group, seconds = relaxed.group, relaxed.seconds
    num_classes = seconds.shape[1]
    for c in range(num_classes):
        if not relaxed.allowed[group[op], c]:
            heads[op, c] = np.inf
    for edge in range(relaxed.start[op], relaxed.start[op + 1]):
        before = relaxed.producer[edge]
        for c in range(num_classes):
            ready = heads[before, c] + seconds[before, c] + relaxed.wait[edge, c]
            if group[before] != group[op]:
                for k in range(num_classes):
                    ready = min(
                        ready, heads[before, k] + seconds[before, k] + move(relaxed, edge, k, c)
                    )
            heads[op, c] = max(heads[op, c], ready)


@inner(cache=True)
def move(relaxed: Relaxed, edge: int, source: int, target: int) -> float:  # pragma: no cover
    """Least seconds that an edge's tensor takes to another device, by classes."""
    return relaxed.bytes[edge] * relaxed.rate[source, target] + relaxed.latency[source, target]
