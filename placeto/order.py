"""Orders: which of a device's ready ops goes first."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from placeto.graph import BACKWARD, FORWARD, UPDATE, ComputationGraph
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import longest_paths, topological_order
from placeto.support.errors import PlacetoError

NamedOrder = Literal["fifo", "gpipe", "1f1b", "eager-1f1b", "critical-path"]
Order = NamedOrder | ArrayLike

ORDERS: tuple[NamedOrder, ...] = get_args(NamedOrder)
_OF_MICROBATCHES = ("gpipe", "1f1b", "eager-1f1b")


def rank_ops(graph: ComputationGraph, op_seconds: Floats, order: Order) -> Ints | None:
    """Gives every op its rank; of a device's ready ops, one with a lower rank goes first.

    Args:
        graph: the ops.
        op_seconds: (num_ops, num_devices) seconds, infinite where an op cannot run.
        order: `"fifo"` (no ranks: first come, first served), `"gpipe"` (all microbatches forward,
            then all backward, the first one first; Huang et al. 2019, arXiv:1811.06965), `"1f1b"`
            (backward before forward, the first microbatch first; Narayanan et al. 2019,
            arXiv:1806.03377; and see `held_back`), `"eager-1f1b"` (the same, but nothing is held
            back; after Zhuang et al. 2022, arXiv:2211.05322), `"critical-path"` (the longest path
            from an op's start to the end of the step goes first, each op on its fastest device, as
            in list scheduling since Graham 1966), or (num_ops,) ranks.

    Returns:
        (num_ops,) ranks, numbered from 0 without gaps; None for none.

    Raises:
        PlacetoError: an unknown order, one of microbatches for a graph of one, or ranks of the
            wrong shape or that are no numbers.
    """
    if isinstance(order, str):
        if order == "fifo":
            return None
        if order not in ORDERS:
            raise PlacetoError(
                f"graph {graph.name!r}: order is {order!r}, expected {', '.join(ORDERS)}, or "
                "(num_ops,) ranks"
            )
        ranks: Floats | Ints
        if order in _OF_MICROBATCHES:
            ranks = _by_microbatches(graph, order)
        else:
            ranks = -_longest_paths(graph, op_seconds)[1]
    else:
        ranks = _checked(graph, order)
    numbers: Ints = np.unique(ranks, return_inverse=True)[1].reshape(-1)
    numbers.flags.writeable = False
    return numbers


def held_back(graph: ComputationGraph, op_seconds: Floats, order: Order) -> Ints:
    """Ops that wait for others though they read nothing of them, wherever both are.

    In the order `"1f1b"` a microbatch begins when the one as many before it as there are devices
    has ended, so that no more are ever kept: that its ops go by ranks holds no device back, and a
    first stage has time for the forward passes of many more until the first is back. What it begins
    with are the forward ops that read nothing of it, and it has ended with the backward op that the
    longest path leads to.

    Args:
        graph: the ops.
        op_seconds: (num_ops, num_devices) seconds, as in `rank_ops`.
        order: see `rank_ops`.

    Returns:
        (n, 2) ops: which one must end before which other begins.

    Raises:
        PlacetoError: a backward pass needs a forward pass that would wait for it.
    """
    most, pairs = op_seconds.shape[1], np.zeros((0, 2), dtype=np.int64)
    if not isinstance(order, str) or order != "1f1b" or graph.num_microbatches <= most:
        return pairs
    source, target = graph.op_edges
    part, forward = graph.microbatch, graph.phase == FORWARD
    first = forward & (part >= most)
    first[target[part[source] == part[target]]] = False
    end = _longest_paths(graph, op_seconds)[0] + op_seconds.min(axis=1)
    backward = np.flatnonzero((graph.phase == BACKWARD) & (part >= 0))
    last = np.full(graph.num_microbatches, -1)
    by_end = backward[np.argsort(end[backward], kind="stable")]
    last[part[by_end]] = by_end  # of equal indices the last one counts
    begins = np.flatnonzero(first)
    pairs = np.stack([last[part[begins] - most], begins], axis=1)
    pairs = pairs[pairs[:, 0] >= 0]
    edges = np.concatenate([np.stack(graph.op_edges), pairs.T], axis=1)
    if len(topological_order(graph.num_ops, *edges)) < graph.num_ops:
        raise PlacetoError(
            f"graph {graph.name!r}: order is '1f1b', and the backward pass of a microbatch needs "
            f"the forward pass of one that is {most} later; expected another order"
        )
    pairs.flags.writeable = False
    return pairs


def _longest_paths(graph: ComputationGraph, op_seconds: Floats) -> tuple[Floats, Floats]:
    start, inputs = graph.inputs
    producers = graph.op_edges[0][inputs]
    fastest = op_seconds.min(axis=1)
    paths: tuple[Floats, Floats] = longest_paths(graph.topological_order, fastest, start, producers)
    return paths


def _by_microbatches(graph: ComputationGraph, order: str) -> Ints:
    count = graph.num_microbatches
    if count == 1:
        raise PlacetoError(
            f"graph {graph.name!r}: order is {order!r}, which goes by microbatches, and the graph "
            "is of one; expected fifo, critical-path, or (num_ops,) ranks"
        )
    backward_first = order != "gpipe"
    begin = np.zeros(3, dtype=np.int64)
    begin[[BACKWARD, FORWARD] if backward_first else [FORWARD, BACKWARD]] = [0, count + 1]
    begin[UPDATE] = 2 * (count + 1)
    # What belongs to all microbatches, such as reads of weights, goes before them.
    return begin[graph.phase] + graph.microbatch + 1


def _checked(graph: ComputationGraph, order: ArrayLike) -> Floats | Ints:
    what = f"graph {graph.name!r}: order"
    try:
        ranks = np.asarray(order)
    except ValueError as error:
        raise PlacetoError(f"{what} is not an array of ranks") from error
    if ranks.shape != (graph.num_ops,):
        raise PlacetoError(
            f"{what} has shape {ranks.shape}, expected ({graph.num_ops},): one rank an op"
        )
    if not (np.issubdtype(ranks.dtype, np.integer) or np.issubdtype(ranks.dtype, np.floating)):
        raise PlacetoError(f"{what} has {ranks.dtype} values, expected numbers")
    if np.isnan(ranks).any():
        raise PlacetoError(f"{what} gives op {int(np.isnan(ranks).argmax())} the rank nan")
    return ranks
