"""Tensor lists, in which loops keep what their gradients need: how large the elements are.

Grappler's shape inference does not look into lists. Inside of a function the shape of an
element is known from the op that made the list outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.extraction.step import op_of

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

_LOOPS = ("While", "StatelessWhile")
_SAME_ELEMENTS = ("Identity", "TensorListPopBack", "TensorListPushBack", "TensorListSetItem")
_ELEMENT_PORT = {"TensorListPopBack": 1, "TensorListGetItem": 0}


def show_elements(
    body: GraphDef,
    arguments: dict[str, str],
    nodes: dict[str, NodeDef],
    properties: dict[str, Any],
) -> None:
    """Gives those who use an element of a list one of known shape, so that their cost is known.

    The elements come from nowhere: the function can be analysed afterwards, but not run.

    Args:
        body: the function as a graph, which is changed.
        arguments: what the function calls an argument -> the tensor outside.
        nodes: the nodes outside.
        properties: dtype and shape of their outputs.
    """
    inside = {node.name: node for node in body.node}
    known = {}
    for node in list(body.node):
        if node.op not in _ELEMENT_PORT:
            continue
        source = op_of(node.input[0])
        while source not in arguments and inside[source].op in _SAME_ELEMENTS:
            source = op_of(inside[source].input[0])
        shape = _element_shape(arguments.get(source, ""), nodes, properties)
        if shape is None:
            continue
        element = body.node.add(name=f"{node.name}/element", op="InfeedDequeue")
        element.attr["dtype"].type = node.attr["element_dtype"].type
        element.attr["shape"].shape.CopyFrom(shape)
        port = _ELEMENT_PORT[node.op]
        known[f"{node.name}:{port}"] = element.name
        if port == 0:
            known[node.name] = element.name
    for node in body.node:
        node.input[:] = [known.get(tensor, tensor) for tensor in node.input]


def _element_shape(tensor: str, nodes: dict[str, NodeDef], properties: dict[str, Any]) -> Any:
    from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

    op, _, port = tensor.partition(":")
    while op in nodes and nodes[op].op in _LOOPS:
        op, _, port = nodes[op].input[int(port or 0)].partition(":")
    sizes = None
    origin = nodes.get(op)
    if origin is not None and origin.op in ("EmptyTensorList", "TensorListReserve"):
        sizes = _constant(nodes[op_of(origin.input[0])])
    elif origin is not None and origin.op == "TensorListFromTensor":
        source, _, port = origin.input[0].partition(":")
        whole = properties[source][int(port or 0)].shape
        sizes = None if whole.unknown_rank else [dim.size for dim in whole.dim[1:]]
    if sizes is None or min(sizes, default=0) < 0:
        return None
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def _constant(node: NodeDef) -> list[int] | None:
    import tensorflow as tf

    if node.op != "Const":
        return None
    value = tf.make_ndarray(node.attr["value"].tensor)
    return None if value.ndim != 1 else [int(size) for size in value]
