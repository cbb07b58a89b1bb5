"""Sizes of every op's outputs, by TensorFlow's static shape inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeto.extraction.grappler import meta_graph

if TYPE_CHECKING:
    from placeto.extraction.step import TrainingStep


@dataclass(frozen=True)
class Outputs:
    """What the ops of a graph put out.

    Attributes:
        num_bytes: op -> bytes of each output; 0 for a handle.
        unknown: outputs (`op:port`) whose shape stays unknown; each unknown dimension is
            counted as 1.
    """

    num_bytes: dict[str, list[int]]
    unknown: tuple[str, ...]


def output_properties(step: TrainingStep) -> dict[str, Any]:
    """Dtype and shape of each op's outputs, as Grappler's `TensorProperties`."""
    from tensorflow.python.grappler.item import Item

    graph_def = type(step.graph_def)()
    graph_def.CopyFrom(step.graph_def)
    for node in graph_def.node:
        if node.op == "Placeholder":
            # Grappler takes the shape of a fed Placeholder for unknown; of an infeed it does not.
            node.op = "InfeedDequeue"
    return Item(meta_graph(graph_def, step.roots)).GetOpProperties()  # type: ignore[no-any-return]


def infer_outputs(step: TrainingStep) -> Outputs:
    """Sizes of all outputs of the step's ops."""
    properties = output_properties(step)
    num_bytes: dict[str, list[int]] = {}
    unknown = []
    for node in step.graph_def.node:
        sizes = num_bytes[node.name] = []
        for port, output in enumerate(properties.get(node.name, ())):
            size, known = _size(output)
            sizes.append(size)
            if not known:
                unknown.append(f"{node.name}:{port}")
    return Outputs(num_bytes, tuple(unknown))


def _size(output: Any) -> tuple[int, bool]:
    import tensorflow as tf

    dtype = tf.as_dtype(output.dtype).base_dtype
    if dtype in (tf.resource, tf.variant):
        return 0, True
    shape = output.shape
    count, known = 1, not shape.unknown_rank and dtype != tf.string
    for dim in shape.dim:
        known = known and dim.size >= 0
        count *= dim.size if dim.size >= 0 else 1
    return count * (dtype.size or 1), known
