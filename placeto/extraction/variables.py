"""Variables: who holds their handles, and what it costs to read and write them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from placeto.extraction.step import op_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

# Passes over the variable's own size that an update makes through memory, everything read or
# written counted once. Grappler sees a handle of no size in place of the variable. An assignment
# may alias its value instead of copying it, which is decided at run time; the copy is charged.
_DENSE_PASSES = {
    "AssignVariableOp": 2,
    "AssignAddVariableOp": 3,
    "AssignSubVariableOp": 3,
    "ResourceApplyGradientDescent": 3,
    "ResourceApplyMomentum": 5,
    "ResourceApplyKerasMomentum": 5,
    "ResourceApplyAdagrad": 5,
    "ResourceApplyAdagradV2": 5,
    "ResourceApplyRMSProp": 7,
    "ResourceApplyCenteredRMSProp": 9,
    "ResourceApplyAdam": 7,
    "ResourceApplyAdamWithAmsgrad": 9,
    "ResourceApplyFtrl": 7,
    "ResourceApplyAdadelta": 7,
}
# The same for updates of a few rows, over the size of the rows.
_SPARSE_PASSES = {
    "ResourceScatterAdd": 3,
    "ResourceScatterSub": 3,
    "ResourceScatterUpdate": 2,
    "ResourceSparseApplyMomentum": 5,
    "ResourceSparseApplyKerasMomentum": 5,
    "ResourceSparseApplyAdagrad": 5,
    "ResourceSparseApplyAdagradV2": 5,
    "ResourceSparseApplyRMSProp": 7,
    "ResourceSparseApplyFtrl": 7,
}
_SOURCES = ("VarHandleOp", "VariableV2", "Variable")
_FORWARDING = ("Identity", "Enter", "Switch")


def variable_bytes(node: NodeDef) -> int:
    """Bytes of the variable that a `VarHandleOp` (or TensorFlow 1's `VariableV2`) holds."""
    import tensorflow as tf

    dims = [dim.size for dim in node.attr["shape"].shape.dim]
    element = int(tf.as_dtype(node.attr["dtype"].type).size or 1)
    return int(prod(dim if dim >= 0 else 1 for dim in dims)) * element


def handles(graph_def: GraphDef) -> dict[str, list[str]]:
    """The variables whose handles each op takes, in the order of its inputs.

    Args:
        graph_def: a graph in topological order.
    """
    held: dict[str, str] = {}
    taken: dict[str, list[str]] = {}
    for node in graph_def.node:
        if node.op in _SOURCES:
            held[node.name] = node.name
            continue
        variables = [held[op_of(x)] for x in node.input if x[0] != "^" and op_of(x) in held]
        if not variables:
            continue
        reads_value = node.op == "Identity" and node.attr["T"].type != _resource()
        taken[node.name] = variables
        if node.op in _FORWARDING and not reads_value:
            held[node.name] = variables[0]
    return taken


def update_bytes(
    graph_def: GraphDef, taken: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Bytes that ops move through memory which write a variable or gather from one.

    Args:
        graph_def: a graph in topological order.
        taken: op -> variables, see `handles`.
        outputs: op -> bytes of each output.
    """
    sizes = {node.name: variable_bytes(node) for node in graph_def.node if node.op in _SOURCES}
    moved = {}
    for node in graph_def.node:
        variables = taken.get(node.name)
        if not variables:
            continue
        if node.op in _DENSE_PASSES:
            moved[node.name] = _DENSE_PASSES[node.op] * sizes[variables[0]]
        elif node.op in _SPARSE_PASSES:
            rows = max(_input_bytes(tensor, outputs) for tensor in node.input)
            moved[node.name] = _SPARSE_PASSES[node.op] * rows
        elif node.op == "ResourceGather":
            moved[node.name] = 2 * sum(outputs[node.name])
    return moved


def _input_bytes(tensor: str, outputs: Mapping[str, Sequence[int]]) -> int:
    if tensor.startswith("^"):
        return 0
    op, _, port = tensor.partition(":")
    return outputs[op][int(port or 0)]


def _resource() -> int:
    from tensorflow.core.framework import types_pb2

    return int(types_pb2.DT_RESOURCE)
