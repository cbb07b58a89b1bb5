"""What a traced step says: when each op ran, and when each tensor was received.

TensorFlow's executor notes four instants of an op (NodeExecStats): the executor takes it up
(`all_start`), its kernel begins (`op_start`) and ends (`op_end`), its outputs are stored
(`all_end`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeto.extraction.quiet import import_tensorflow
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from tensorflow.core.framework.step_stats_pb2 import NodeExecStats, StepStats

# What carries a tensor within the runtime: its time is that of waiting, and its name its own.
_CARRIES = re.compile(r" = _(Host)?(Send|Recv)\(")
_RECEIVED = re.compile(r"\] edge_\d+_(?P<name>\S+) from (?P<source>\S+) to (?P<to>\S+)$")
_STREAMS = "/stream:all"


@dataclass(frozen=True)
class OpRun:
    """One run of an op on a device.

    Attributes:
        op: its name.
        type: of the op that ran, such as `Relu`; TensorFlow may have put in one of its own.
        device: its number.
        begin: seconds since the step's first event, when the executor took it up.
        end: seconds, when its outputs were stored.
        seconds: what its kernel took.
    """

    op: str
    type: str
    device: int
    begin: float
    end: float
    seconds: float


@dataclass(frozen=True)
class Received:
    """One tensor that came from another process.

    Attributes:
        producer: name of the op whose output it is.
        source: number of the device it came from.
        destination: number of the device that it came to.
        num_bytes: as sent.
        begin: seconds since the step's first event, when the sender had it.
        end: seconds, when it was there.
    """

    producer: str
    source: int
    destination: int
    num_bytes: int
    begin: float
    end: float


@dataclass(frozen=True)
class Trace:
    """A traced step.

    Attributes:
        ops: runs of ops, by `begin`; those of ops which the runtime added are among them.
        received: tensors, by `begin`.
    """

    ops: tuple[OpRun, ...]
    received: tuple[Received, ...]


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
        stats = RunMetadata.FromString(data).step_stats
    except DecodeError as error:
        raise PlacetoError(f"trace: not a RunMetadata: {error}") from error
    numbers = {name: number for number, name in enumerate(devices)}
    for each in stats.dev_stats:
        if each.device.endswith(_STREAMS):
            each.device = _whole_name(each.device, devices)
    starts = [_begin(node) for each in stats.dev_stats for node in each.node_stats]
    first = min(starts, default=0)
    ops = sorted(_ops(stats, numbers, first), key=lambda run: run.begin)
    if not ops:
        found = ", ".join(sorted({each.device for each in stats.dev_stats})) or "none"
        raise PlacetoError(f"trace: no op ran on {', '.join(devices)}; devices in it: {found}")
    received = sorted(_received(stats, numbers, first), key=lambda each: each.begin)
    return Trace(tuple(ops), tuple(received))


def _whole_name(stream: str, devices: Sequence[str]) -> str:
    """The name of a stream with the job and task of the one device that it can be of."""
    short = stream.removesuffix(_STREAMS)
    whole = [name for name in devices if name.endswith(short)]
    return f"{whole[0]}{_STREAMS}" if len(whole) == 1 else stream


def _ops(stats: StepStats, numbers: dict[str, int], first: int) -> Iterator[OpRun]:
    streamed = {
        each.device.removesuffix(_STREAMS)
        for each in stats.dev_stats
        if each.device.endswith(_STREAMS)
    }
    for each in stats.dev_stats:
        name = each.device.removesuffix(_STREAMS)
        if name not in numbers or (name in streamed and name == each.device):
            continue
        for node in each.node_stats:
            label = node.timeline_label
            if _RECEIVED.search(label) or _CARRIES.search(label) or node.node_name == "_SOURCE":
                continue
            begin = _begin(node) - first
            kernel = _relative(node, "op_end") - _relative(node, "op_start")
            yield OpRun(
                # The GPU's own entries are called `op:type`; no op's name has a colon.
                node.node_name.partition(":")[0],
                label.partition(" = ")[2].partition("(")[0],
                numbers[name],
                begin * 1e-9,
                (begin + _relative(node, "all_end")) * 1e-9,
                max(kernel, 0) * 1e-9,
            )


def _received(stats: StepStats, numbers: dict[str, int], first: int) -> Iterator[Received]:
    for each in stats.dev_stats:
        for node in each.node_stats:
            match = _RECEIVED.search(node.timeline_label)
            if match is None or match["source"] not in numbers or match["to"] not in numbers:
                continue
            begin = _begin(node) - first
            end = begin + _relative(node, "all_end")
            yield Received(
                match["name"],
                numbers[match["source"]],
                numbers[match["to"]],
                # The label rounds it to a tenth of a megabyte.
                sum(
                    slot.tensor_description.allocation_description.requested_bytes
                    for slot in node.output
                ),
                begin * 1e-9,
                end * 1e-9,
            )


def _begin(node: NodeExecStats) -> int:
    # In nanoseconds, which a float of seconds since 1970 could not tell apart. Some parts of the
    # runtime give microseconds alone.
    return int(node.all_start_nanos or node.all_start_micros * 1000)


def _relative(node: NodeExecStats, instant: str) -> int:
    nanoseconds = getattr(node, f"{instant}_rel_nanos")
    return int(nanoseconds or getattr(node, f"{instant}_rel_micros") * 1000)
