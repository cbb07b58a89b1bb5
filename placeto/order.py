"""Orders: which of a device's ready ops goes first."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from placeto.graph import BACKWARD, FORWARD, UPDATE, ComputationGraph
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import longest_paths
from placeto.support.errors import PlacetoError

NamedOrder = Literal["fifo", "gpipe", "1f1b", "critical-path"]
Order = NamedOrder | ArrayLike

ORDERS: tuple[NamedOrder, ...] = get_args(NamedOrder)
_OF_MICROBATCHES = ("gpipe", "1f1b")


def rank_ops(graph: ComputationGraph, op_seconds: Floats, order: Order) -> Ints | None:
    """Gives every op its rank; of a device's ready ops, one with a lower rank goes first.

    Args:
        graph: the ops.
        op_seconds: (num_ops, num_devices) seconds, infinite where an op cannot run.
        order: `"fifo"` (no ranks: first come, first served), `"gpipe"` (all microbatches forward,
            then all backward, the first one first; Huang et al. 2019, arXiv:1811.06965), `"1f1b"`
            (backward before forward, the first microbatch first; Narayanan et al. 2019,
            arXiv:1806.03377), `"critical-path"` (the longest path from an op's start to the end of
            the step goes first, each op on its fastest device, as in list scheduling since Graham
            1966), or (num_ops,) ranks.

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
            start, inputs = graph.inputs
            producers = graph.op_edges[0][inputs]
            fastest = op_seconds.min(axis=1)
            ranks = -longest_paths(graph.topological_order, fastest, start, producers)[1]
    else:
        ranks = _checked(graph, order)
    numbers: Ints = np.unique(ranks, return_inverse=True)[1].reshape(-1)
    numbers.flags.writeable = False
    return numbers


def _by_microbatches(graph: ComputationGraph, order: str) -> Ints:
    count = graph.num_microbatches
    if count == 1:
        raise PlacetoError(
            f"graph {graph.name!r}: order is {order!r}, which goes by microbatches, and the graph "
            "is of one; expected fifo, critical-path, or (num_ops,) ranks"
        )
    backward_first = order == "1f1b"
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
