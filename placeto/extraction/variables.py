"""Variables: who holds their handles, who must run beside them, what updates of them cost.

Graphs are in topological order; `taken` is what `handles` finds in them.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import tensorflow as tf
from scipy.cluster.hierarchy import DisjointSet
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.types_pb2 import DT_RESOURCE

from placeto.extraction.op_kinds import DENSE_PASSES, SPARSE_PASSES, VARIABLES
from placeto.extraction.step import op_and_port, op_of
from placeto.grouping.disjoint_sets import shared_keys
from placeto.support.arrays import Ints

_FORWARDING = ("Identity", "Enter", "Switch")
_COLOCATED = b"loc:@"


def variable_bytes(node: NodeDef) -> int:
    """Bytes of the variable that a `VarHandleOp` (or TensorFlow 1's `VariableV2`) holds."""
    element = int(tf.as_dtype(node.attr["dtype"].type).size or 1)
    return (
        int(prod(dim.size if dim.size >= 0 else 1 for dim in node.attr["shape"].shape.dim))
        * element
    )


def handles(graph_def: GraphDef) -> dict[str, list[str]]:
    """Op -> the variables whose handles it takes, in the order of its inputs."""
    held: dict[str, str] = {}
    taken: dict[str, list[str]] = {}
    for node in graph_def.node:
        if node.op in VARIABLES:
            held[node.name] = node.name
            continue
        variables = [held[op_of(x)] for x in node.input if x[0] != "^" and op_of(x) in held]
        if not variables:
            continue
        taken[node.name] = variables
        reads_value = node.op == "Identity" and node.attr["T"].type != DT_RESOURCE
        if node.op in _FORWARDING and not reads_value:
            held[node.name] = variables[0]
    return taken


def update_bytes(
    graph_def: GraphDef, taken: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Op -> bytes that it moves through memory, if it writes a variable or gathers from one.

    `outputs` has the bytes of each op's outputs.
    """
    sizes = {node.name: variable_bytes(node) for node in graph_def.node if node.op in VARIABLES}
    moved = {}
    for node in graph_def.node:
        if node.name not in taken:
            continue
        if node.op in DENSE_PASSES:
            moved[node.name] = DENSE_PASSES[node.op] * sizes[taken[node.name][0]]
        elif node.op in SPARSE_PASSES:
            inputs = [op_and_port(tensor) for tensor in node.input]
            rows = max(outputs[op][port] for op, port in inputs if port >= 0)
            moved[node.name] = SPARSE_PASSES[node.op] * rows
        elif node.op == "ResourceGather":
            moved[node.name] = 2 * sum(outputs[node.name])
    return moved


def colocation_keys(graph_def: GraphDef, taken: Mapping[str, Sequence[str]]) -> Ints:
    """(num_ops,) keys of ops that TensorFlow insists on running on one device.

    An op goes with each variable whose handle it takes, and with the ops of its `_class`. Keys are
    from 0 up in the order in which groups first appear; -1 for an op on its own.
    """
    index = {node.name: position for position, node in enumerate(graph_def.node)}
    joined = DisjointSet(range(len(index)))
    for position, node in enumerate(graph_def.node):
        partners = list(taken.get(node.name, ()))
        partners += [
            op_of(constraint.removeprefix(_COLOCATED).decode())
            for constraint in (node.attr["_class"].list.s if "_class" in node.attr else ())
            if constraint.startswith(_COLOCATED)
        ]
        for partner in filter(index.__contains__, partners):
            joined.merge(position, index[partner])
    return shared_keys(np.array([joined[position] for position in range(len(index))]))
