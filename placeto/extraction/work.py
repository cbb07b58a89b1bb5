"""What Grappler knows of every op: the sizes of its outputs, its FLOPs and the bytes it moves.

Its analytic cost model charges an op its operations over the device's peak plus the bytes it
touches over the bandwidth. Its results are rounded to microseconds, in which most ops of a fast
device vanish, so the model is asked about a device that does 1 operation and moves 1 byte per
microsecond: the answer is the operations and the bytes themselves. `Work.seconds` then puts a
device's figures in.
"""

import copy
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.grappler.item import Item

from placeto.extraction.device_kinds import DeviceKind
from placeto.extraction.grappler import meta_graph, unit_device
from placeto.extraction.step import TrainingStep
from placeto.support.arrays import Floats, Ints


@dataclass(frozen=True)
class Work:
    """What each op has to do, whatever the device.

    Attributes:
        flops: (num_ops,) operations.
        moved_bytes: (num_ops,) bytes read and written.
        temp_bytes: (num_ops,) memory that the op needs while it runs.
    """

    flops: Floats
    moved_bytes: Floats
    temp_bytes: Ints

    def seconds(self, kind: DeviceKind) -> Floats:
        """(num_ops,) seconds on a device: operations over peak plus bytes over bandwidth."""
        return self.flops / kind.flops_per_second + self.moved_bytes / kind.bytes_per_second


def measure_work(step: TrainingStep) -> Work:
    """The work of the step's ops, in node order."""
    with unit_device() as cluster:
        costs, _, _ = cluster.MeasureCosts(Item(meta_graph(step.graph_def, step.roots)))
    index = {node.name: position for position, node in enumerate(step.graph_def.node)}
    flops, moved, temp = np.zeros((3, len(index)))
    for cost in costs:
        if cost.node in index:
            position = index[cost.node]
            flops[position] = cost.compute_time / 1000  # ns at 1 operation per us
            moved[position] = cost.memory_time / 1000
            temp[position] = cost.op_memory.temp_memory + cost.op_memory.device_temp_memory
    return Work(flops, moved, temp.astype(np.int64))


def output_properties(step: TrainingStep) -> dict[str, Any]:
    """Dtype and shape of each op's outputs, as Grappler's `TensorProperties`."""
    graph_def = copy.deepcopy(step.graph_def)
    for node in graph_def.node:
        if node.op == "Placeholder":
            # Grappler takes the shape of a fed Placeholder for unknown; of an infeed it does not.
            node.op = "InfeedDequeue"
    return Item(meta_graph(graph_def, step.roots)).GetOpProperties()  # type: ignore[no-any-return]


def output_bytes(step: TrainingStep) -> tuple[dict[str, list[int]], list[str]]:
    """Sizes of all outputs of the step's ops, and those of unknown shape.

    Returns:
        op -> bytes of each output, 0 for a handle; the outputs (`op:port`) whose shape stays
        unknown, of which each unknown dimension is counted as 1.
    """
    properties = output_properties(step)
    found: dict[str, list[int]] = {}
    unknown = []
    for node in step.graph_def.node:
        sizes = found[node.name] = []
        for port, output in enumerate(properties.get(node.name, ())):
            size, known = _size(output)
            sizes.append(size)
            if not known:
                unknown.append(f"{node.name}:{port}")
    return found, unknown


def _size(output: Any) -> tuple[int, bool]:
    dtype = tf.as_dtype(output.dtype).base_dtype
    if dtype in (tf.resource, tf.variant):
        return 0, True
    dims = [dim.size for dim in output.shape.dim]
    known = not output.shape.unknown_rank and dtype != tf.string and min(dims, default=0) >= 0
    return prod(size if size >= 0 else 1 for size in dims) * (dtype.size or 1), known
