"""Inputs of a step, generated where they are consumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

_PREFIX = "placeto_input"


def with_inputs(graph_def: GraphDef) -> list[str]:
    """Replaces each placeholder by an op of the same name that yields one fixed batch.

    Where consumers are on several devices each of these gets an op of its own, so that no input
    is ever transferred. Floating-point inputs are variables, filled once with normal random
    numbers; whole numbers are constants drawn from 0 and 1. The graph, with a device on every op,
    is changed in place; returned are the ops that must run once before the first step.
    """
    initializers = []
    for node in [node for node in graph_def.node if node.op == "Placeholder"]:
        placeholder = type(node)()
        placeholder.CopyFrom(node)
        users: dict[str, list[tuple[NodeDef, int]]] = {}
        for other in graph_def.node:
            for position, tensor in enumerate(other.input):
                if tensor in (node.name, f"{node.name}:0"):
                    users.setdefault(other.device, []).append((other, position))
        # The placeholder's own device first: its name stays with it if it has a consumer there.
        devices = sorted(users, key=lambda device: device != placeholder.device)
        for number, device in enumerate(devices or [placeholder.device]):
            stand_in = node if number == 0 else graph_def.node.add()
            stand_in.CopyFrom(placeholder)
            stand_in.device = device
            if number:
                stand_in.name = f"{_PREFIX}/{placeholder.name}/{number}"
                for user, position in users[device]:
                    user.input[position] = stand_in.name
            initializers += _fill(graph_def, stand_in, placeholder)
    return initializers


def _fill(graph_def: GraphDef, node: NodeDef, placeholder: NodeDef) -> list[str]:
    from tensorflow.python.framework import dtypes
    from tensorflow.python.framework.tensor_util import make_tensor_proto

    dtype = dtypes.as_dtype(placeholder.attr["dtype"].type)
    shape = [dim.size for dim in placeholder.attr["shape"].shape.dim]
    node.ClearField("attr")
    node.attr["dtype"].type = dtype.as_datatype_enum
    if not dtype.is_floating:
        # Mostly row numbers of a table, or classes; every table has two.
        value = np.random.default_rng(0).integers(0, 2, shape).astype(dtype.as_numpy_dtype)
        node.op = "Const"
        node.attr["value"].tensor.CopyFrom(make_tensor_proto(value, dtype))
        return []
    prefix = f"{_PREFIX}/{node.name}"

    def add(name: str, op: str, *inputs: str, **types: Any) -> NodeDef:
        made = graph_def.node.add(name=f"{prefix}/{name}", op=op, device=node.device, input=inputs)
        for key, kind in types.items():
            made.attr[key].type = kind.as_datatype_enum
        return made

    size = add("shape", "Const", dtype=dtypes.int32)
    size.attr["value"].tensor.CopyFrom(make_tensor_proto(shape, dtypes.int32, [len(shape)]))
    normal = add("normal", "RandomStandardNormal", size.name, dtype=dtype, T=dtypes.int32)
    normal.attr["seed"].i = normal.attr["seed2"].i = 1
    handle = add("variable", "VarHandleOp", dtype=dtype)
    handle.attr["shape"].shape.CopyFrom(placeholder.attr["shape"].shape)
    assign = add("assign", "AssignVariableOp", handle.name, normal.name, dtype=dtype)
    node.op = "ReadVariableOp"
    node.input.append(handle.name)
    return [assign.name]
