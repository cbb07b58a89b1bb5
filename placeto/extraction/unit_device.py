"""The imaginary machine that Grappler works for: the result depends on no real one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def unit_device() -> Iterator[Any]:
    """A Grappler cluster of one device that does 1 operation and moves 1 byte per microsecond."""
    from tensorflow.core.protobuf.device_properties_pb2 import DeviceProperties, NamedDevice
    from tensorflow.python.grappler.cluster import Cluster

    properties = DeviceProperties(
        type="CPU",
        frequency=1,  # MHz; Grappler lets a CPU core do one operation per clock
        num_cores=1,
        bandwidth=1000,  # kB/s
        memory_size=1 << 50,
    )
    name = "/job:localhost/replica:0/task:0/device:CPU:0"
    cluster = Cluster(devices=[NamedDevice(name=name, properties=properties)])
    try:
        yield cluster
    finally:
        cluster.Shutdown()
