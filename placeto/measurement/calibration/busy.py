"""Small steps in which two devices compute, and one sends tensors to the other meanwhile."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placeto.cluster import Cluster
from placeto.extraction.quiet import import_tensorflow
from placeto.graph import ComputationGraph
from placeto.measurement.calibration.exchange import (
    FLOAT_BYTES,
    INITIALIZER,
    in_turn,
    kept,
    variable,
)
from placeto.measurement.measured import Effort
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

_SIDE = 384  # of a matrix; a product takes a millisecond, or less


@dataclass(frozen=True)
class Shape:
    """How many tensors are sent, of how many bytes, and how many products lie between two."""

    num_tensors: int
    num_bytes: int
    here: int  # at the source, from one tensor to the next
    there: int  # at the destination, as many times


class BusyExchange:
    """A step of products of matrices, in a chain on either device, in which tensors are sent.

    The source has a tensor after every so many of its products, and goes on after the last, until
    that has arrived. Who consumes them does nothing with them, when all products are done. So the
    step of the device that has more to compute is longer by what it does to send, or to receive,
    and by nothing else.

    Args:
        cluster: whose devices may take part.
        shape: what is computed and sent.
        folder: where its GraphDef is put.
    """

    def __init__(self, cluster: Cluster, shape: Shape, folder: Path) -> None:
        self.shape = shape
        name = "-".join(map(str, astuple(shape)))
        self.runnable = kept(_graph_def(shape), shape.num_tensors, folder / f"{name}.graphdef")
        self.problem = PlacementProblem(_graph(cluster, shape), cluster, "none")

    def run(self, runtime: Runtime, source: int, other: int, effort: Effort) -> Floats:
        """Seconds of steps in which both devices compute, those of two kinds in turn.

        Returns:
            (2, num_steps) where the source keeps the tensors to itself, and where it sends them.

        Raises:
            PlacetoError: it cannot be run.
        """
        names = self.problem.graph.op_names
        many = np.zeros((2, self.problem.num_groups), dtype=np.int64)
        for devices, consumer in zip(many, (source, other), strict=True):
            side = {"h": source, "t": other, "u": consumer}
            devices[self.problem.op_group] = [side[name[0]] for name in names]
        return in_turn(runtime, self.problem, many, self.runnable, effort)

    @property
    def num_products(self) -> tuple[int, int]:
        """Of a step, at the source and at the other end."""
        rows = self.shape.num_tensors + 1
        return rows * self.shape.here, rows * self.shape.there


class Work:
    """A step of such products on one device, which tells how fast that is at the moment."""

    num_products = 48

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        shape = Shape(1, FLOAT_BYTES, self.num_products // 2, 0)
        self._exchange = BusyExchange(cluster, shape, folder)

    def placed(self, device: int) -> tuple[PlacementProblem, Ints, Runnable]:
        """What `Runtime.in_turn` takes."""
        problem = self._exchange.problem
        return problem, np.full(problem.num_groups, device), self._exchange.runnable


def _products(shape: Shape) -> list[tuple[str, str]]:
    """Each product, by name, with what it multiplies."""
    found = []
    for device, count in (("here", shape.here), ("there", shape.there)):
        before = f"{device}_read"
        for number in range(count * (shape.num_tensors + 1)):
            found.append((f"{device}_product{number}", before))
            before = found[-1][0]
    return found


def _last(shape: Shape, device: str, tensors: int) -> str:
    """What a device has computed last when it was that many times as far as a tensor."""
    count = (shape.here if device == "here" else shape.there) * tensors
    return f"{device}_product{count - 1}" if count else f"{device}_read"


def _graph(cluster: Cluster, shape: Shape) -> ComputationGraph:
    types = {f"{device}_matrix": "VarHandleOp" for device in ("here", "there")}
    types |= {"here_variable": "VarHandleOp", "here_read": "ReadVariableOp"}
    types |= {"there_read": "ReadVariableOp"}
    edges = []  # producer, bytes, consumers
    size = _SIDE * _SIDE * FLOAT_BYTES
    for name, before in _products(shape):
        types[name] = "MatMul"
        edges.append((before, size, [name]))
    uses = [f"use{number}" for number in range(shape.num_tensors)]
    for number, use in enumerate(uses):
        types[f"here_sent{number}"] = "ReadVariableOp"
        types[use] = "Shape"
        edges.append((_last(shape, "here", number + 1), 0, [f"here_sent{number}"]))
        edges.append((f"here_sent{number}", shape.num_bytes, [use]))
    types |= {"here": "NoOp", "there": "NoOp"}
    edges += [
        (_last(shape, device, shape.num_tensors + 1), 0, [device, *uses])
        for device in ("here", "there")
    ]
    number_of = {name: number for number, name in enumerate(types)}
    seconds = np.array([1e-3 if kind == "MatMul" else 0.0 for kind in types.values()])
    readers = [len(consumers) for _, _, consumers in edges]
    return ComputationGraph(
        name=f"busy exchange of {shape.num_tensors} x {shape.num_bytes} bytes",
        op_names=list(types),
        op_types=list(types.values()),
        op_seconds=dict.fromkeys(cluster.kinds, seconds),
        tensor_producer=np.array([number_of[producer] for producer, _, _ in edges]),
        tensor_bytes=np.array([num_bytes for _, num_bytes, _ in edges]),
        edge_tensor=np.repeat(np.arange(len(edges)), readers),
        edge_consumer=np.array([number_of[name] for _, _, names in edges for name in names]),
    )


def _graph_def(shape: Shape) -> GraphDef:
    import_tensorflow()
    import tensorflow as tf

    sizes = {"here_matrix": [_SIDE, _SIDE], "there_matrix": [_SIDE, _SIDE]}
    sizes |= {"here_variable": [shape.num_bytes // FLOAT_BYTES]}
    made, assigned = {}, []
    with tf.Graph().as_default() as graph:
        for name, size in sizes.items():
            # Products of such matrices are such matrices.
            made[name], filled = variable(name, size, 1 / _SIDE)
            assigned.append(filled)
        for device in ("here", "there"):
            made[f"{device}_read"] = tf.raw_ops.ReadVariableOp(
                resource=made[f"{device}_matrix"], dtype=tf.float32, name=f"{device}_read"
            )
        for name, before in _products(shape):
            start = made[f"{name.partition('_')[0]}_read"]
            made[name] = tf.raw_ops.MatMul(a=made[before], b=start, name=name)
        ends = [made[_last(shape, device, shape.num_tensors + 1)] for device in ("here", "there")]
        for number in range(shape.num_tensors):
            with tf.control_dependencies([made[_last(shape, "here", number + 1)]]):
                sent = tf.raw_ops.ReadVariableOp(
                    resource=made["here_variable"], dtype=tf.float32, name=f"here_sent{number}"
                )
            with tf.control_dependencies(ends):
                tf.raw_ops.Shape(input=sent, name=f"use{number}")
        for end, device in zip(ends, ("here", "there"), strict=True):
            with tf.control_dependencies([end]):
                tf.no_op(device)
        with tf.control_dependencies(assigned):
            tf.no_op(INITIALIZER)
    return graph.as_graph_def()
