"""Ops that TensorFlow insists on running on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from placeto.extraction.step import op_of
from placeto.grouping.disjoint_sets import shared_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from tensorflow.core.framework.graph_pb2 import GraphDef

_PREFIX = b"loc:@"


def colocation_keys(graph_def: GraphDef, taken: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    """(num_ops,) keys: an op with each variable whose handle it takes, and with its `_class`.

    Args:
        graph_def: a graph in topological order.
        taken: op -> variables whose handles it takes.

    Returns:
        Keys from 0 up in the order in which groups first appear; -1 for an op on its own.
    """
    index = {node.name: position for position, node in enumerate(graph_def.node)}
    pairs: list[tuple[int, int]] = []
    for position, node in enumerate(graph_def.node):
        partners = list(taken.get(node.name, ()))
        constraints = node.attr["_class"].list.s if "_class" in node.attr else ()
        partners += [
            op_of(constraint.removeprefix(_PREFIX).decode())
            for constraint in constraints
            if constraint.startswith(_PREFIX)
        ]
        pairs += [(position, index[partner]) for partner in partners if partner in index]
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    joined = coo_array((np.ones(len(pairs)), (ends[0], ends[1])), shape=(len(index), len(index)))
    return shared_keys(connected_components(joined, directed=False)[1])
