"""Grappler's own simulator, on the bundled graphs and the same placements."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.extraction.quiet import import_tensorflow
from placeto.support.bundle import FOLDERS
from placeto.support.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from placeto.problem import PlacementProblem
    from placeto.support.arrays import Ints

DEVICE = "/job:localhost/replica:0/task:0/device:GPU:{}"


def has_grappler() -> bool:
    """Whether TensorFlow, an extra, is installed."""
    return importlib.util.find_spec("tensorflow") is not None


@contextmanager
def grappler(problem: PlacementProblem, devices: Ints) -> Iterator[Callable[[], float]]:
    """A function that has Grappler work out the step time of a placement, in seconds.

    One call is one `Cluster.MeasureCosts`: it infers shapes, estimates the time of every op from
    the device's figures, simulates the step, and hands the costs of all ops to Python. The GraphDef
    is read, placed and made an `Item` beforehand.

    Args:
        problem: of a bundled graph, on devices that are all K80s.
        devices: (num_groups,) the placement.
    """
    import_tensorflow()
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.device_properties_pb2 import DeviceProperties, NamedDevice
    from tensorflow.python.grappler.cluster import Cluster
    from tensorflow.python.grappler.item import Item

    from placeto.extraction.grappler import meta_graph

    run = problem.graph.meta["run"]
    graph_def = GraphDef.FromString(read_bytes(FOLDERS["graphs"] / run["graph_def"]))
    placed = dict(
        zip(problem.graph.op_names, devices[problem.op_group].tolist(), strict=True)
    )  # the nodes that are no ops of the step initialize variables
    for node in graph_def.node:
        if node.name in placed:
            node.device = DEVICE.format(placed[node.name])
    k80 = next(kind for kind in DEVICE_KINDS if kind.name == "k80")
    properties = DeviceProperties(
        type="GPU",
        vendor="NVIDIA",
        environment={"architecture": "3.7"},
        num_cores=k80.multiprocessors,
        frequency=int(k80.clock_hertz / 1e6),  # MHz
        bandwidth=int(k80.bytes_per_second / 1e3),  # kB/s
        memory_size=int(problem.memory_limit[0]),
    )
    item = Item(meta_graph(graph_def, [*run["fetches"], *run["targets"]]))
    cluster = Cluster(
        devices=[
            NamedDevice(name=DEVICE.format(number), properties=properties)
            for number in range(problem.num_devices)
        ]
    )
    try:
        yield lambda: float(cluster.MeasureCosts(item)[1])
    finally:
        cluster.Shutdown()
