"""Small steps that do nothing but send tensors from one device to another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.cluster import Cluster
from placeto.extraction.quiet import import_tensorflow
from placeto.graph import ComputationGraph
from placeto.measurement.measured import Effort
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError
from placeto.support.files import write_bytes

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

INITIALIZER = "initialize"
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Sample:
    """What transfers added to a step, whose tensors are sent at the same instant."""

    num_tensors: int
    num_bytes: int  # of each
    seconds: float  # how much longer the step took than one without transfers
    noise_seconds: float = 0.0  # how well that is known


class Exchange:
    """A small step in which one device sends tensors of one size to another and does nothing else.

    They are all there at the same instant, and an op waits for each. A tensor is a variable's
    value, so that producing it takes next to no time, and its consumer looks at nothing but its
    shape.

    Args:
        cluster: whose devices may take part.
        num_tensors: how many.
        num_bytes: of each; a multiple of 4.
        folder: where its GraphDef is put.
    """

    def __init__(self, cluster: Cluster, num_tensors: int, num_bytes: int, folder: Path) -> None:
        self.num_tensors, self.num_bytes = num_tensors, num_bytes
        graph_def = _graph_def(num_tensors, num_bytes // FLOAT_BYTES)
        self._runnable = kept(
            graph_def, num_tensors, folder / f"{num_tensors}x{num_bytes}.graphdef"
        )
        self.problem = PlacementProblem(_graph(cluster, num_tensors, num_bytes), cluster, "none")

    def devices(self, source: int, consumer: int, other: int) -> Ints:
        """(num_groups,) the devices of the tensors, of their consumers and of one op more.

        With that `other` device takes part in any case, as starting a step on two devices takes
        longer than on one.
        """
        counts = [2 * self.num_tensors + 1, self.num_tensors, 1]
        return np.repeat([source, consumer, other], counts)

    def run(
        self, runtime: Runtime, source: int, consumers: Sequence[int], other: int, effort: Effort
    ) -> Floats:
        """(len(consumers), num_steps) seconds of steps, those of each consumer in turn.

        See `devices`.

        Raises:
            PlacetoError: one cannot be run.
        """
        many = [self.devices(source, consumer, other) for consumer in consumers]
        return in_turn(runtime, self.problem, np.stack(many), self._runnable, effort)

    def sample(self, runtime: Runtime, source: int, destination: int, effort: Effort) -> Sample:
        """Measures the step with its consumers here and with its consumers there, in turn.

        The difference is what the transfers took.

        Raises:
            PlacetoError: a step cannot be run.
        """
        here, there = self.run(runtime, source, (source, destination), destination, effort)
        added = float(np.median(there - here))
        deviation = float(np.median(np.abs(there - here - added)))
        return Sample(self.num_tensors, self.num_bytes, added, 2 * deviation / len(here) ** 0.5)


def in_turn(
    runtime: Runtime, problem: PlacementProblem, many: Ints, runnable: Runnable, effort: Effort
) -> Floats:
    """(n, num_steps) seconds of the steps of (n, num_groups) placements, see `Runtime.compare`.

    Raises:
        PlacetoError: one cannot be run.
    """
    found = runtime.compare(problem, many, runnable, effort)
    if not found[0].feasible:
        raise PlacetoError(
            f"cluster {problem.cluster.name!r}: {problem.graph.name} cannot be run: "
            f"{found[0].reason}"
        )
    return np.array([each.samples for each in found])


def kept(graph_def: GraphDef, num_tensors: int, path: Path) -> Runnable:
    """Writes the GraphDef of an exchange of so many tensors, which ops `use0`, … consume."""
    data = graph_def.SerializeToString(deterministic=True)
    write_bytes(path, data)
    uses = [f"use{number}" for number in range(num_tensors)]
    digest = hashlib.sha256(data).hexdigest()
    return Runnable(path, digest, (), ("here", "there", *uses), INITIALIZER)


def variable(name: str, shape: list[int], value: float) -> tuple[Any, Any]:
    """A variable's handle, of its name, and the op that fills it with a value."""
    import tensorflow as tf

    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=name, name=name)
    filled = tf.fill(shape, value, name=f"fill_{name}")
    return handle, tf.raw_ops.AssignVariableOp(resource=handle, value=filled)


def _graph(cluster: Cluster, num_tensors: int, num_bytes: int) -> ComputationGraph:
    types = {
        **{f"variable{number}": "VarHandleOp" for number in range(num_tensors)},
        **{f"read{number}": "ReadVariableOp" for number in range(num_tensors)},
        "here": "NoOp",
        **{f"use{number}": "Shape" for number in range(num_tensors)},
        "there": "NoOp",
    }
    tensors = np.arange(num_tensors)
    return ComputationGraph(
        name=f"exchange of {num_tensors} x {num_bytes} bytes",
        op_names=list(types),
        op_types=list(types.values()),
        op_seconds={kind: np.zeros(len(types)) for kind in cluster.kinds},
        tensor_producer=tensors + num_tensors,
        tensor_bytes=np.full(num_tensors, num_bytes),
        edge_tensor=tensors,
        edge_consumer=tensors + 2 * num_tensors + 1,
    )


def _graph_def(num_tensors: int, num_floats: int) -> GraphDef:
    import_tensorflow()
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        assigned = []
        for number in range(num_tensors):
            handle, filled = variable(f"variable{number}", [num_floats], 1.0)
            assigned.append(filled)
            read = tf.raw_ops.ReadVariableOp(
                resource=handle, dtype=tf.float32, name=f"read{number}"
            )
            tf.raw_ops.Shape(input=read, name=f"use{number}")
        tf.no_op("here")
        tf.no_op("there")
        with tf.control_dependencies(assigned):
            tf.no_op(INITIALIZER)
    return graph.as_graph_def()
