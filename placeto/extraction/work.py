"""The work of every op, FLOPs and bytes moved, by Grappler's analytic cost model.

The model charges an op its operations over the device's peak plus the bytes it touches over
the bandwidth. Its results are rounded to microseconds, in which most ops of a fast device
vanish, so the model is asked about a device that does 1 operation and moves 1 byte per
microsecond: the answer is the operations and the bytes themselves. `seconds` then puts a
device's figures in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeto.extraction.grappler import meta_graph
from placeto.extraction.unit_device import unit_device

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placeto.extraction.device_kinds import DeviceKind
    from placeto.extraction.step import TrainingStep


@dataclass(frozen=True)
class Work:
    """What each op has to do, whatever the device.

    Attributes:
        flops: (num_ops,) operations.
        moved_bytes: (num_ops,) bytes read and written.
        temp_bytes: (num_ops,) memory that the op needs while it runs.
    """

    flops: NDArray[np.float64]
    moved_bytes: NDArray[np.float64]
    temp_bytes: NDArray[np.int64]

    def seconds(self, kind: DeviceKind) -> NDArray[np.float64]:
        """(num_ops,) seconds on a device: operations over peak plus bytes over bandwidth."""
        return self.flops / kind.flops_per_second + self.moved_bytes / kind.bytes_per_second


def measure_work(step: TrainingStep) -> Work:
    """The work of the step's ops, in node order."""
    from tensorflow.python.grappler.item import Item

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
