"""Ops that give variables values like those they had, without storing them."""

import copy
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.types_pb2 import DT_INT32

from placeto.extraction.step import InitialValue, TrainingStep

INITIALIZER = "placeto_initialize"
_DEFAULT_DEVIATION = 0.02


def with_initializers(step: TrainingStep) -> GraphDef:
    """The step's graph and one op, `INITIALIZER`, that sets all of its variables.

    A variable whose elements are all equal is filled, a small one is stored, any other gets
    random numbers of the same mean and standard deviation (three digits), with a fixed seed.
    """
    graph_def = copy.deepcopy(step.graph_def)
    variables = [node for node in step.graph_def.node if node.op == "VarHandleOp"]
    done = [
        _initialize(graph_def, node, step.initial.get(node.name) or _default(node), seed)
        for seed, node in enumerate(variables, start=1)
    ]
    graph_def.node.add(name=INITIALIZER, op="NoOp", input=[f"^{name}" for name in done])
    return graph_def


def _default(variable: NodeDef) -> InitialValue:
    dtype = tf.as_dtype(variable.attr["dtype"].type)
    if dtype.is_floating and len(variable.attr["shape"].shape.dim) > 1:
        return InitialValue(None, 0.0, _DEFAULT_DEVIATION)
    return InitialValue(np.zeros((), dtype.as_numpy_dtype))


def _initialize(graph_def: GraphDef, variable: NodeDef, initial: InitialValue, seed: int) -> str:
    """Adds the ops that set a variable; returns the name of the last."""
    dtype: int = variable.attr["dtype"].type
    shape = [dim.size if dim.size >= 0 else 1 for dim in variable.attr["shape"].shape.dim]

    def add(name: str, op: str, *inputs: str, **types: int) -> NodeDef:
        name = f"{INITIALIZER}/{variable.name}/{name}"
        node = graph_def.node.add(name=name, op=op, input=inputs)
        for key, each in types.items():
            node.attr[key].type = each
        return node

    def constant(name: str, value: Any, dtype: int = dtype) -> str:
        if isinstance(value, float):
            value = float(f"{value:.3g}")
        node = add(name, "Const", dtype=dtype)
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.as_dtype(dtype)))
        return str(node.name)

    if initial.stored is not None and list(np.shape(initial.stored)) == shape:
        value = constant("value", initial.stored)
    else:
        size = constant("shape", np.array(shape, dtype=np.int32), DT_INT32)
        if initial.stored is not None:
            one = constant("value", initial.stored)
            value = add("fill", "Fill", size, one, T=dtype, index_type=DT_INT32).name
        else:
            normal = add("normal", "RandomStandardNormal", size, dtype=dtype, T=DT_INT32)
            normal.attr["seed"].i, normal.attr["seed2"].i = 1, seed
            deviation = constant("deviation", initial.deviation)
            scaled = add("scaled", "Mul", normal.name, deviation, T=dtype)
            mean = constant("mean", initial.mean)
            value = add("moved", "AddV2", scaled.name, mean, T=dtype).name
    return str(add("assign", "AssignVariableOp", variable.name, value, dtype=dtype).name)
