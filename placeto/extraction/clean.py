"""Making a traced graph independent of where and how it was traced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorflow.core.framework.node_def_pb2 import NodeDef

    from placeto.extraction.step import TrainingStep

_KEPT = frozenset({"_class", "_XlaMustCompile"})


def cleaned(step: TrainingStep) -> TrainingStep:
    """The step without devices and private attributes, its inputs of known shape.

    Args:
        step: a training step.

    Raises:
        PlacetoError: an input's shape stays unknown.
    """
    graph_def = type(step.graph_def)()
    graph_def.CopyFrom(step.graph_def)
    _clean_nodes(graph_def.node)
    for function in graph_def.library.function:
        _clean_nodes(function.node_def)
    fixed = [_fix_shape(node, step.batch) for node in graph_def.node if node.op == "Placeholder"]
    if step.batch is not None and not any(fixed):
        raise PlacetoError(
            f"batch={step.batch} has no use: no input has an unknown first dimension; leave it out"
        )
    return replace(step, graph_def=graph_def)


def _clean_nodes(nodes: Iterable[NodeDef]) -> None:
    for node in nodes:
        node.device = ""
        node.ClearField("experimental_debug_info")
        for key in [key for key in node.attr if key.startswith("_") and key not in _KEPT]:
            # `_lower_using_switch_merge` is among them: lowered loops would be cycles.
            del node.attr[key]


def _fix_shape(node: NodeDef, batch: int | None) -> bool:
    # Whether the batch was filled in.
    shape = node.attr["shape"].shape
    unknown = [index for index, dim in enumerate(shape.dim) if dim.size < 0]
    if unknown == [0] and batch is not None:
        shape.dim[0].size = batch
        return True
    if shape.unknown_rank or unknown:
        found = "unknown" if shape.unknown_rank else [dim.size for dim in shape.dim]
        raise PlacetoError(
            f"input {node.name!r} has shape {found}; give a static shape, or ?batch=N where only "
            "the first dimension is unknown"
        )
    return False
