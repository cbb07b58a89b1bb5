"""Bandwidth, latency and overhead of channels, from transfers of many sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placeto.cluster import Channel, Cluster
from placeto.extraction.quiet import import_tensorflow
from placeto.graph import ComputationGraph
from placeto.measurement.measured import Effort, Measurement
from placeto.measurement.runnable import Runnable
from placeto.measurement.runtime import Runtime
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.files import write_bytes

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

# Bytes of a tensor -> how many a step sends. Several at once tell what holds the channel (overhead)
# from what does not (latency).
_COUNTS = {4: (1, 4, 16), 2**16: (1, 16), 2**20: (1, 4), 2**22: (1, 4), 2**24: (1,), 2**26: (1,)}
EXCHANGES = tuple((count, size) for size, counts in _COUNTS.items() for count in counts)
# Medians of tens of steps are not known better than this.
_RELATIVE_NOISE = 0.05
_MIN_NOISE_SECONDS = 10e-6
# Where no transfer of any size takes longer than another.
_MAX_BANDWIDTH = 1e13
_INITIALIZER = "initialize"
_FLOAT_BYTES = 4


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
        self._num_tensors, self._num_bytes = num_tensors, num_bytes
        graph_def = _graph_def(num_tensors, num_bytes // _FLOAT_BYTES)
        data = graph_def.SerializeToString(deterministic=True)
        sha256 = hashlib.sha256(data).hexdigest()
        path = folder / f"{num_tensors}x{num_bytes}.graphdef"
        write_bytes(path, data)
        uses = [f"use{number}" for number in range(num_tensors)]
        self._runnable = Runnable(path, sha256, (), ("here", "there", *uses), _INITIALIZER)
        self.problem = PlacementProblem(_graph(cluster, num_tensors, num_bytes), cluster, "none")

    def devices(self, source: int, consumer: int, other: int) -> Ints:
        """(num_groups,) the devices of the tensors, of their consumers and of one op more.

        With that `other` device takes part in any case, as starting a step on two devices takes
        longer than on one.
        """
        counts = [2 * self._num_tensors + 1, self._num_tensors, 1]
        return np.repeat([source, consumer, other], counts)

    def run(
        self, runtime: Runtime, source: int, consumer: int, other: int, effort: Effort
    ) -> Measurement:
        """Measures a step; see `devices`.

        Raises:
            PlacetoError: it cannot be run.
        """
        placement = self.devices(source, consumer, other)
        measurement = runtime.measure(self.problem, placement, self._runnable, effort)
        if not measurement.feasible:
            names = [self.problem.cluster.devices[device].name for device in (source, consumer)]
            raise PlacetoError(
                f"cluster {self.problem.cluster.name!r}: a transfer from {names[0]!r} to "
                f"{names[1]!r} cannot be run: {measurement.reason}"
            )
        return measurement

    def sample(self, runtime: Runtime, source: int, destination: int, effort: Effort) -> Sample:
        """Measures the step with its consumers here and with its consumers there, in turn.

        The difference is what the transfers took.

        Raises:
            PlacetoError: a step cannot be run.
        """
        here = self.run(runtime, source, source, destination, effort)
        there = self.run(runtime, source, destination, destination, effort)
        noise = 2 * (here.deviation + there.deviation) / len(there.samples) ** 0.5
        added = there.step_time - here.step_time
        return Sample(self._num_tensors, self._num_bytes, added, noise)


def fit_channel(channel: Channel, samples: Sequence[Sample]) -> tuple[Channel, float]:
    """The channel with the figures by which it would have taken as long, none below 0.

    A channel carries k tensors of n bytes in latency + k n / bandwidth + (k - 1) overhead, by the
    semantics of the simulation. The fit is by least squares with a soft L1 loss, which lets no
    single sample pull far (Huber 1964), of residuals in units of each sample's noise.

    Args:
        channel: which one.
        samples: at least three, of different sizes and counts.

    Returns:
        The channel, and the median relative difference between samples and fit.
    """
    from scipy.optimize import least_squares, nnls

    count = np.array([sample.num_tensors for sample in samples], dtype=np.float64)
    size = np.array([sample.num_bytes for sample in samples], dtype=np.float64)
    seconds = np.array([sample.seconds for sample in samples])
    noise = np.array([sample.noise_seconds for sample in samples])
    weight = 1 / (noise + _RELATIVE_NOISE * np.abs(seconds) + _MIN_NOISE_SECONDS)
    terms = np.stack([count * size, np.ones(len(samples)), count - 1], axis=1)
    weighted = terms * weight[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    weighted /= scale
    target = seconds * weight
    start, _ = nnls(weighted, target)
    tolerances = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12)
    found = least_squares(
        lambda x: weighted @ x - target, start, bounds=(0, np.inf), loss="soft_l1", **tolerances
    ).x
    by_byte, latency, overhead = (found / scale).tolist()
    predicted = terms @ (found / scale)
    error = np.median(np.abs(predicted - seconds) / np.maximum(np.abs(seconds), _MIN_NOISE_SECONDS))
    # The solver stays off its bounds by a hair: nothing less than a nanosecond was measured.
    fitted = replace(
        channel,
        bandwidth=1 / max(by_byte, 1 / _MAX_BANDWIDTH),
        latency_seconds=round(latency, 9),
        overhead_seconds=round(overhead, 9),
    )
    return fitted, float(error)


def fit_channels(
    cluster: Cluster, sample: Callable[[int, int], Sequence[Sample]]
) -> tuple[tuple[Channel, ...], tuple[float, ...]]:
    """The cluster's channels with figures that were measured, and the error of each fit.

    `sample` measures transfers from one device to another, by their numbers; a channel that serves
    several pairs is fitted to the samples of all of them.

    Raises:
        PlacetoError: a channel that serves no pair.
    """
    between = cluster.channel_between
    for number, channel in enumerate(cluster.channels):
        if not (between == number).any():
            raise PlacetoError(
                f"cluster {cluster.name!r}: channel {channel.name!r} leads from no device to "
                "another, so it cannot be measured; remove it"
            )
    fits = []
    for number, channel in enumerate(cluster.channels):
        samples = [each for pair in np.argwhere(between == number) for each in sample(*pair)]
        fits.append(fit_channel(channel, samples))
    return tuple(channel for channel, _ in fits), tuple(error for _, error in fits)


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
            name = f"variable{number}"
            handle = tf.raw_ops.VarHandleOp(
                dtype=tf.float32, shape=[num_floats], shared_name=name, name=name
            )
            value = tf.fill([num_floats], 1.0, name=f"fill{number}")
            assigned.append(tf.raw_ops.AssignVariableOp(resource=handle, value=value))
            read = tf.raw_ops.ReadVariableOp(
                resource=handle, dtype=tf.float32, name=f"read{number}"
            )
            tf.raw_ops.Shape(input=read, name=f"use{number}")
        tf.no_op("here")
        tf.no_op("there")
        with tf.control_dependencies(assigned):
            tf.no_op(_INITIALIZER)
    return graph.as_graph_def()
