"""Ops that TensorFlow insists on running on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeto.extraction.step import op_of

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
    parent = list(range(len(index)))

    def root(position: int) -> int:
        while parent[position] != position:
            parent[position] = parent[parent[position]]
            position = parent[position]
        return position

    for node in graph_def.node:
        partners = list(taken.get(node.name, ()))
        constraints = node.attr["_class"].list.s if "_class" in node.attr else ()
        partners += [
            op_of(constraint.removeprefix(_PREFIX).decode())
            for constraint in constraints
            if constraint.startswith(_PREFIX)
        ]
        for partner in partners:
            if partner in index:
                first, second = sorted((root(index[node.name]), root(index[partner])))
                parent[second] = first
    roots = np.array([root(position) for position in range(len(index))], dtype=np.int64)
    size = np.bincount(roots, minlength=len(roots))
    shared = np.unique(roots[size[roots] > 1])
    keys = np.full(len(roots), -1, dtype=np.int64)
    inside = size[roots] > 1
    keys[inside] = np.searchsorted(shared, roots[inside])
    return keys
