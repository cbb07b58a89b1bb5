"""Traced steps, made by hand, and two workers that they may be of."""

from typing import Any

from placeto import Channel, Cluster, Device
from placeto.support.launch import Launch

W0, W1 = (f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in (0, 1))
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
STREAM = "/device:GPU:0/stream:all"  # as TensorFlow calls it
WORKERS = Cluster(
    "pair",
    (
        Device("d0", "k", 10**9, tensorflow="/job:worker/task:0/device:CPU:0"),
        Device("d1", "k", 10**9, tensorflow="/job:worker/task:1/device:CPU:0"),
    ),
    (Channel("up", ("d0",), ("d1",), 1e6), Channel("down", ("d1",), ("d0",), 1e6)),
    launch=Launch(),
)


def op(
    name: str,
    begin: int,
    kernel: tuple[int, int],
    length: int,
    kind: str = "Op",
    *,
    nanoseconds: bool = True,
) -> Any:
    """An op's entry: begin, its kernel's begin and end, its end; in microseconds.

    Instants but `begin` are relative to it, which is after 1e9 s.
    """
    from tensorflow.core.framework.step_stats_pb2 import NodeExecStats

    node = NodeExecStats(node_name=name, timeline_label=f"{name} = {kind}(x, ^y)")
    instants = {"op_start_rel": kernel[0], "op_end_rel": kernel[1], "all_end_rel": length}
    node.all_start_micros = 10**15 + begin
    for key, value in instants.items():
        setattr(node, f"{key}_micros", value)
    if nanoseconds:
        node.all_start_nanos = node.all_start_micros * 1000
        for key, value in instants.items():
            setattr(node, f"{key}_nanos", value * 1000)
    return node


def received(name: str, num_bytes: int, begin: int, length: int, source: str, to: str) -> Any:
    """The entry of a tensor that came from another worker, as its receiver writes it."""
    size = f"{num_bytes}B" if num_bytes < 10**5 else f"{num_bytes / 2**20:.1f}MB"
    label = f"[{size}] [1.2Gb/s] edge_12_{name} from {source} to {to}"
    node = op("RecvTensor", begin, (0, length), length, nanoseconds=False)
    node.timeline_label = label
    tensor = node.output.add().tensor_description
    tensor.allocation_description.requested_bytes = num_bytes
    return node


def run_metadata(**nodes: list[Any]) -> bytes:
    """A serialized RunMetadata; `w0`, `w1` or `stream` -> entries."""
    from tensorflow.core.protobuf.config_pb2 import RunMetadata

    names = {"w0": W0, "w1": W1, "w0_again": W0, "gpu": GPU, "stream": STREAM}
    metadata = RunMetadata()
    for key, entries in nodes.items():
        device = metadata.step_stats.dev_stats.add(device=names[key])
        device.node_stats.extend(entries)
    return metadata.SerializeToString()
