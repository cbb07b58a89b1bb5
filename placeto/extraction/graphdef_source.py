"""A serialized GraphDef: `.pb`, `.pbtxt`, either compressed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from placeto.extraction.initializers import INITIALIZER
from placeto.extraction.source import Source, take_options
from placeto.extraction.step import TrainingStep, op_of
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

# Ops that say nothing about what a graph is for when nothing consumes them.
_NOT_SINKS = frozenset({"Const", "Placeholder", "VarHandleOp", "Assert", "ReadVariableOp"})


def load(source: Source) -> TrainingStep:
    """The step that a GraphDef file describes.

    Options: `fetch`, ops or tensors that must run, separated by commas (by default every op
    that nothing consumes), and `batch`, for inputs whose first dimension is unknown.

    Raises:
        PlacetoError: not a GraphDef, or a fetch that it does not have.
    """
    options = take_options(source, {"fetch": "", "batch": 0})
    path = Path(source.target)
    graph_def = _parse(path)
    nodes = {node.name: node for node in graph_def.node}
    if options["fetch"]:
        roots = [name.strip() for name in options["fetch"].split(",")]
    else:
        roots = _sinks(graph_def)
    for name in roots:
        if op_of(name) not in nodes:
            raise PlacetoError(f"{source.text}: fetch {name!r} is not an op of {path.name}")
    if not roots:
        raise PlacetoError(f"{source.text}: no op to run was found; name some with ?fetch=op,op")
    fetches = [name for name in roots if _has_output(nodes[op_of(name)].op)]
    targets = [op_of(name) for name in roots if not _has_output(nodes[op_of(name)].op)]
    return TrainingStep(
        name=path.name.split(".")[0],
        graph_def=graph_def,
        fetches=tuple(name if ":" in name else f"{name}:0" for name in fetches),
        targets=tuple(targets),
        batch=options["batch"] or None,
    )


def _parse(path: Path) -> GraphDef:
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.python.framework import op_def_registry

    data = read_bytes(path)
    try:
        if ".pbtxt" in path.suffixes:
            graph_def = text_format.Parse(data, GraphDef())
        else:
            graph_def = GraphDef.FromString(data)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise PlacetoError(f"{path}: not a GraphDef ({error})") from error
    names = {node.name for node in graph_def.node}
    if not names or "" in names:
        raise PlacetoError(f"{path}: not a GraphDef (no named ops in it)")
    functions = {function.signature.name for function in graph_def.library.function}
    for node in graph_def.node:
        if node.op not in functions and op_def_registry.get(node.op) is None:
            raise PlacetoError(f"{path}: op {node.name!r} has type {node.op!r}, unknown here")
        for tensor in node.input:
            if op_of(tensor) not in names:
                raise PlacetoError(
                    f"{path}: op {node.name!r} consumes {tensor!r}, which is not there; is the "
                    "file cut off?"
                )
    return graph_def


def _sinks(graph_def: GraphDef) -> list[str]:
    consumed = {op_of(tensor) for node in graph_def.node for tensor in node.input}
    return [
        node.name
        for node in graph_def.node
        if node.name not in consumed
        and node.op not in _NOT_SINKS
        and node.name.split("/")[0] != INITIALIZER
    ]


def _has_output(op: str) -> bool:
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    return definition is None or bool(definition.output_arg)
