"""What a traced step says: when each op ran, and when each tensor was received.

TensorFlow's executor notes four instants of an op (NodeExecStats): the executor takes it up
(`all_start`), its kernel begins (`op_start`) and ends (`op_end`), its outputs are stored
(`all_end`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeto.extraction.quiet import import_tensorflow
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from tensorflow.core.framework.step_stats_pb2 import NodeExecStats

# What carries a tensor within the runtime: its time is that of waiting, and its name its own.
_CARRIES = re.compile(r" = _(Host)?(Send|Recv)\(")
_RECEIVED = re.compile(r"\] edge_\d+_(?P<name>\S+) from (?P<source>\S+) to (?P<to>\S+)$")
_STREAMS = "/stream:all"


@dataclass(frozen=True)
class OpRun:
    """One run of an op on a device; instants are seconds since the step's first event."""

    op: str
    type: str  # of the op that ran, such as `Relu`; TensorFlow may have put in one of its own
    device: int
    begin: float  # when the executor took it up
    end: float  # when its outputs were stored
    seconds: float  # what its kernel took


@dataclass(frozen=True)
class Received:
    """One tensor that came from another process; instants are as those of an `OpRun`."""

    producer: str  # the op whose output it is
    source: int  # device
    destination: int  # device
    num_bytes: int
    begin: float  # when the sender had it
    end: float  # when it was there


@dataclass(frozen=True)
class Trace:
    """A traced step: runs of ops, of those that the runtime added too, and tensors; by `begin`."""

    ops: Sequence[OpRun]
    received: Sequence[Received]

    @property
    def seconds(self) -> float:
        """From the step's first event to its last."""
        return max([run.end for run in self.ops] + [each.end for each in self.received])


def read_trace(data: bytes, devices: Sequence[str]) -> Trace:
    """Reads a step that was traced with FULL_TRACE.

    On a GPU the executor's instants are those of launching kernels; where the trace has the
    GPU's own these are taken. Their device is called `/device:GPU:0/stream:all`, without job and
    task.

    Args:
        data: a serialized `tensorflow.RunMetadata`.
        devices: TensorFlow's full names of the devices; what others did is left out.

    Raises:
        PlacetoError: it is no RunMetadata, or has no op on any of the devices.
    """
    import_tensorflow()
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.config_pb2 import RunMetadata

    try:
        stats = RunMetadata.FromString(data).step_stats.dev_stats
    except DecodeError as error:
        raise PlacetoError(f"trace: not a RunMetadata: {error}") from error
    numbers = {name: number for number, name in enumerate(devices)}
    entries = [(_whole_name(each.device, devices), each.node_stats) for each in stats]
    streamed = {name.removesuffix(_STREAMS) for name, _ in entries if name.endswith(_STREAMS)}
    starts = [_nanoseconds(node, "all_start") for _, nodes in entries for node in nodes]
    first = min(starts, default=0)
    ops, received = [], []
    for name, nodes in entries:
        # Of a device that has streams the executor's own entries are left out.
        device = None if name in streamed else numbers.get(name.removesuffix(_STREAMS))
        for node in nodes:
            label = node.timeline_label
            begin = _nanoseconds(node, "all_start") - first
            span = begin * 1e-9, (begin + _nanoseconds(node, "all_end_rel")) * 1e-9
            if match := _RECEIVED.search(label):
                if match["source"] in numbers and match["to"] in numbers:
                    # The label rounds it to a tenth of a megabyte.
                    num_bytes = sum(
                        slot.tensor_description.allocation_description.requested_bytes
                        for slot in node.output
                    )
                    ends = numbers[match["source"]], numbers[match["to"]]
                    received.append(Received(match["name"], *ends, num_bytes, *span))
            elif device is not None and not _CARRIES.search(label) and node.node_name != "_SOURCE":
                kernel = _nanoseconds(node, "op_end_rel") - _nanoseconds(node, "op_start_rel")
                # The GPU's own entries are called `op:type`; no op's name has a colon.
                op = node.node_name.partition(":")[0]
                kind = label.partition(" = ")[2].partition("(")[0]
                ops.append(OpRun(op, kind, device, *span, max(kernel, 0) * 1e-9))
    if not ops:
        found = ", ".join(sorted({name for name, _ in entries})) or "none"
        raise PlacetoError(f"trace: no op ran on {', '.join(devices)}; devices in it: {found}")
    return Trace(
        sorted(ops, key=lambda run: run.begin), sorted(received, key=lambda each: each.begin)
    )


def _whole_name(device: str, devices: Sequence[str]) -> str:
    """The name of a stream with the job and task of the one device that it can be of."""
    if not device.endswith(_STREAMS):
        return device
    whole = [name for name in devices if name.endswith(device.removesuffix(_STREAMS))]
    return f"{whole[0]}{_STREAMS}" if len(whole) == 1 else device


def _nanoseconds(node: NodeExecStats, instant: str) -> int:
    # A float of seconds since 1970 could not tell them apart. Some parts of the runtime give
    # microseconds alone.
    return int(getattr(node, f"{instant}_nanos") or getattr(node, f"{instant}_micros") * 1000)
