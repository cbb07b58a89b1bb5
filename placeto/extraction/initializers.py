"""Ops that give variables values like those they had, without storing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.extraction.initial_value import InitialValue

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

    from placeto.extraction.step import TrainingStep

INITIALIZER = "placeto_initialize"
_DEFAULT_DEVIATION = 0.02


def with_initializers(step: TrainingStep) -> GraphDef:
    """The step's graph and one op, `INITIALIZER`, that sets all of its variables.

    A variable whose elements are all equal is filled, a small one is stored, any other gets
    random numbers of the same mean and standard deviation (three digits), with a fixed seed.
    """
    graph_def = type(step.graph_def)()
    graph_def.CopyFrom(step.graph_def)
    done = []
    variables = [node for node in step.graph_def.node if node.op == "VarHandleOp"]
    for number, node in enumerate(variables):
        builder = _Builder(graph_def, f"{INITIALIZER}/{node.name}", node, number + 1)
        done.append(builder.assign(step.initial.get(node.name)))
    group = graph_def.node.add(name=INITIALIZER, op="NoOp")
    group.input.extend(f"^{name}" for name in done)
    return graph_def


class _Builder:
    def __init__(self, graph_def: GraphDef, prefix: str, variable: NodeDef, seed: int) -> None:
        self.graph_def = graph_def
        self.prefix = prefix
        self.variable = variable
        self.seed = seed
        self.dtype = variable.attr["dtype"].type
        self.shape = [dim.size if dim.size >= 0 else 1 for dim in variable.attr["shape"].shape.dim]

    def assign(self, initial: InitialValue | None) -> str:
        value = self._value(initial or self._default())
        node = self._node("assign", "AssignVariableOp", self.variable.name, value)
        node.attr["dtype"].type = self.dtype
        return str(node.name)

    def _default(self) -> InitialValue:
        import tensorflow as tf

        dtype = tf.as_dtype(self.dtype)
        if dtype.is_floating and len(self.shape) > 1:
            return InitialValue(None, 0.0, _DEFAULT_DEVIATION)
        return InitialValue(np.zeros((), dtype.as_numpy_dtype))

    def _value(self, initial: InitialValue) -> str:
        if initial.stored is None:
            return self._random(initial.mean, initial.deviation)
        if list(np.shape(initial.stored)) == self.shape:
            return self._const("value", initial.stored)
        return self._fill(initial.stored)

    def _fill(self, value: Any) -> str:
        node = self._node("fill", "Fill", self._shape(), self._const("value", value))
        node.attr["T"].type = self.dtype
        node.attr["index_type"].type = _int32()
        return str(node.name)

    def _random(self, mean: float, deviation: float) -> str:
        normal = self._node("normal", "RandomStandardNormal", self._shape())
        normal.attr["dtype"].type = self.dtype
        normal.attr["T"].type = _int32()
        normal.attr["seed"].i = 1
        normal.attr["seed2"].i = self.seed
        scaled = self._node("scaled", "Mul", normal.name, self._const("deviation", deviation))
        moved = self._node("moved", "AddV2", scaled.name, self._const("mean", mean))
        for node in (scaled, moved):
            node.attr["T"].type = self.dtype
        return str(moved.name)

    def _shape(self) -> str:
        return self._const("shape", np.array(self.shape, dtype=np.int32), _int32())

    def _const(self, name: str, value: Any, dtype: int | None = None) -> str:
        import tensorflow as tf

        if isinstance(value, float):
            value = float(f"{value:.3g}")
        node = self._node(name, "Const")
        node.attr["dtype"].type = dtype or self.dtype
        node.attr["value"].tensor.CopyFrom(
            tf.make_tensor_proto(value, tf.as_dtype(dtype or self.dtype))
        )
        return str(node.name)

    def _node(self, name: str, op: str, *inputs: str) -> NodeDef:
        node = self.graph_def.node.add(name=f"{self.prefix}/{name}", op=op)
        node.input.extend(inputs)
        return node


def _int32() -> int:
    from tensorflow.core.framework import types_pb2

    return int(types_pb2.DT_INT32)
