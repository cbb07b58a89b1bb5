"""A traced tf.function as a training step: captured variables become ops of their own."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.ops import handle_data_util

from placeto.extraction.microbatches import named
from placeto.extraction.op_kinds import NOT_TARGETS
from placeto.extraction.result import unique
from placeto.extraction.step import TrainingStep, op_of, renamed, summarized
from placeto.support.errors import PlacetoError
from placeto.zoo.microbatches import sections_of


@contextlib.contextmanager
def variables_kept() -> Iterator[None]:
    """Keeps every variable made in the block alive to its end.

    A traced function holds its variables weakly: those of a function that only returns what it
    traced would be gone before their values can be read.
    """
    kept = []

    def keep(create: Any, **arguments: Any) -> Any:
        kept.append(create(**arguments))
        return kept[-1]

    with tf.variable_creator_scope(keep):
        yield


def training_step(
    function: Any, name: str, variable_names: Mapping[int, str] | None = None
) -> TrainingStep:
    """The training step that a ConcreteFunction computes.

    Variables have TensorFlow's own names, but where `variable_names` has one by the `id` of the
    variable's handle.

    Raises:
        PlacetoError: the function captures something that cannot be turned into ops.
    """
    graph = function.graph
    names = {id(variable.handle): variable.name for variable in graph.variables}
    names.update(variable_names or {})
    taken = {operation.name: 0 for operation in graph.get_operations()}
    replaced: dict[str, NodeDef] = {}
    initial = {}
    for outer, inner in zip(function.captured_inputs, graph.internal_captures, strict=True):
        node, value = _captured(outer, inner, names.get(id(outer), inner.op.name), taken)
        replaced[inner.op.name] = node
        if node.op == "VarHandleOp":
            initial[node.name] = summarized(value)
    graph_def = graph.as_graph_def()
    rename = {old: node.name for old, node in replaced.items()}
    for node in graph_def.node:
        if node.name in replaced:
            node.CopyFrom(replaced[node.name])
        node.input[:] = [renamed(tensor, rename) for tensor in node.input]
        if node.op == "AddN" and "/" not in node.name and "/" in node.input[0]:
            # TensorFlow adds up gradients outside of all name scopes; under the scope of the first
            # of them, the sum's name says which layer it belongs to.
            scope = op_of(node.input[0]).rpartition("/")[0]
            rename[node.name] = node.name = unique(f"{scope}/{node.name}", taken)
    phases: dict[str, int] = {}
    if sections := sections_of(graph):
        shared = {node.name for node in replaced.values()}
        last, phases = named(graph_def, sections, shared)
        rename = {**last, **{old: last.get(new, new) for old, new in rename.items()}}
    fetches = [_fetch(output, rename) for output in graph.outputs]
    # control_outputs come in no fixed order; the operations of a graph come as they were traced.
    must_run = {operation.name for operation in graph.control_outputs}
    targets = [
        rename.get(operation.name, operation.name)
        for operation in graph.get_operations()
        if operation.name in must_run and operation.type not in NOT_TARGETS
    ]
    if not fetches and not targets:
        raise PlacetoError(
            f"{name}: the traced function returns nothing and changes no variable; return the loss"
        )
    return TrainingStep(name, graph_def, tuple(fetches), tuple(targets), initial, phases=phases)


def _captured(outer: Any, inner: Any, name: str, taken: dict[str, int]) -> tuple[NodeDef, Any]:
    name = unique(name.removesuffix(":0"), taken)
    node = NodeDef(name=name)
    if outer.dtype == tf.variant:
        raise PlacetoError(
            f"{name}: the step captures a dataset or another object that is no tensor; pass what "
            "it yields as an argument"
        )
    if outer.dtype != tf.resource:
        value = outer.numpy()
        node.op = "Const"
        node.attr["dtype"].type = outer.dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, outer.dtype))
        return node, value
    data = handle_data_util.get_resource_handle_data(inner)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        raise PlacetoError(
            f"{name}: the step captures a resource that is not a variable (a table, an iterator?); "
            "pass what it yields as an argument"
        )
    held = data.shape_and_type[0]
    node.op = "VarHandleOp"
    node.attr["dtype"].type = held.dtype
    node.attr["shape"].shape.CopyFrom(held.shape)
    node.attr["shared_name"].s = name.encode()
    return node, tf.raw_ops.ReadVariableOp(resource=outer, dtype=held.dtype).numpy()


def _fetch(output: Any, rename: Mapping[str, str]) -> str:
    # The Identity that tf.function wraps around a result waits for every side effect of the
    # step; the result itself does not.
    if output.op.type == "Identity" and output.op.control_inputs:
        output = output.op.inputs[0]
    return f"{rename.get(output.op.name, output.op.name)}:{output.value_index}"
