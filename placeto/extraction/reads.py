"""One read of a variable where a trace has many of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeto.extraction.step import op_of

if TYPE_CHECKING:
    from collections.abc import Container

    from tensorflow.core.framework.graph_pb2 import GraphDef


def merge_reads(graph_def: GraphDef, kept: Container[str]) -> GraphDef:
    """The graph with equal reads of a variable made one.

    Every use of a variable in a traced function reads it again. Reads that wait for the same ops
    see the same value, and a write that must come after one of them is made to come after all.
    Their outputs are one buffer when the graph runs, but would count as many when placed.

    Args:
        graph_def: a graph whose functions are inlined.
        kept: ops that must keep their names.
    """
    first: dict[tuple[str, ...], str] = {}
    rename: dict[str, str] = {}
    merged = type(graph_def)(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.op == "ReadVariableOp" and node.name not in kept:
            known = first.setdefault((node.input[0], *sorted(node.input[1:])), node.name)
            if known != node.name:
                rename[node.name] = known
                continue
        merged.node.append(node)
    for node in merged.node:
        inputs = []
        for tensor in node.input:
            name, colon, port = tensor.removeprefix("^").partition(":")
            mark = "^" if tensor.startswith("^") else ""
            inputs.append(mark + rename.get(op_of(name), name) + colon + port)
        del node.input[:]
        node.input.extend(
            tensor
            for position, tensor in enumerate(inputs)
            if not tensor.startswith("^") or tensor not in inputs[:position]
        )
    return merged
