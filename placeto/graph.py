"""Computation graphs: ops, the tensors they produce, who consumes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import asdict

from placeto.support.arrays import Bools, Floats, Ints
from placeto.support.bundle import find
from placeto.support.columns import LARGEST, check_length, real, strings, whole
from placeto.support.dags import compressed, levels, topological_order
from placeto.support.documents import Document, check_format, from_value, read_document
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json

FORMAT: Literal["placeto.graph"] = "placeto.graph"
VERSION = 1
# Whole numbers; what other tools write of them may have a point.
Column = list[int | float]

MOST_SECONDS = 1e12  # that all ops take together: 30,000 years
FORWARD, BACKWARD, UPDATE = range(3)  # phases
# Column of the ops -> what it holds where it is left out, and what its numbers stay below.
_WHOLE_COLUMNS: dict[str, tuple[int, int | None]] = {
    "param_bytes": (0, None),
    "temp_bytes": (0, None),
    "colocation": (-1, None),
    "microbatch": (-1, None),
    "copy_of": (-1, None),
    "phase": (FORWARD, UPDATE + 1),
}
_OF_PIPELINES = ("microbatch", "copy_of", "phase")


@dataclass(frozen=True, eq=False)
class ComputationGraph:
    """One training step as a graph of ops, numbered from 0 in the order given.

    Equality compares every field but `folder`. Arrays are copied, made read-only and checked when
    the graph is built; edges that name the same tensor and consumer twice are merged, and
    edges are kept sorted by (tensor, consumer).

    Attributes:
        name: what the graph is called in tables and files.
        op_names: (num_ops,) unique names.
        op_types: (num_ops,) types such as `Conv2D`.
        op_seconds: device kind -> (num_ops,) seconds; infinite where the kind cannot run the op.
        tensor_producer: (num_tensors,) the op that produces each tensor.
        tensor_bytes: (num_tensors,) bytes; 0 for a control dependency.
        edge_tensor: (num_edges,) the tensor consumed.
        edge_consumer: (num_edges,) the op that consumes it.
        param_bytes: (num_ops,) bytes that live on the op's device throughout.
        temp_bytes: (num_ops,) bytes that live while the op runs.
        flops: (num_ops,) floating-point operations.
        colocation: (num_ops,) ops that share a key from 0 up must share a device; -1 for none.
        microbatch: (num_ops,) of a pipelined step, the part of the batch that an op is of; -1 for
            ops that belong to all.
        copy_of: (num_ops,) the same op in microbatch 0; -1 for none.
        phase: (num_ops,) of a pipelined step, `FORWARD`, `BACKWARD` or `UPDATE`.
        meta: anything else, as JSON (where the graph comes from, how costs were made).
        folder: that of the file it was read from; its GraphDef is looked for there.

    Raises:
        PlacetoError: arrays of unequal length, ids out of range, negative or NaN sizes, repeated
            op names, a cycle, more than 2**62 bytes or 10**12 seconds in all.
    """

    name: str
    op_names: Sequence[str]
    op_types: Sequence[str]
    op_seconds: Mapping[str, Floats]
    tensor_producer: Ints
    tensor_bytes: Ints
    edge_tensor: Ints
    edge_consumer: Ints
    param_bytes: Ints = field(default=None, kw_only=True)  # type: ignore[arg-type]
    temp_bytes: Ints = field(default=None, kw_only=True)  # type: ignore[arg-type]
    flops: Floats = field(default=None, kw_only=True)  # type: ignore[arg-type]
    colocation: Ints = field(default=None, kw_only=True)  # type: ignore[arg-type]
    microbatch: Ints = field(default=None, kw_only=True)  # type: ignore[arg-type]
    copy_of: Ints = field(default=None, kw_only=True)  # type: ignore[arg-type]
    phase: Ints = field(default=None, kw_only=True)  # type: ignore[arg-type]
    meta: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    folder: Path | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        where = f"graph {self.name!r}"
        if not isinstance(self.name, str):
            raise PlacetoError(f"{where}: name is {self.name!r}, expected a string")
        if not isinstance(self.meta, Mapping):
            raise PlacetoError(f"{where}: meta is {self.meta!r}, expected a mapping")
        put = object.__setattr__
        put(self, "op_names", strings(self.op_names, f"{where}: ops.name"))
        put(self, "op_types", strings(self.op_types, f"{where}: ops.type"))
        num_ops = len(self.op_names)
        if num_ops == 0:
            raise PlacetoError(f"{where}: has no ops")
        check_length(self.op_types, num_ops, f"{where}: ops.type", "op")
        for column, (fill, end) in _WHOLE_COLUMNS.items():
            given = getattr(self, column)
            values = np.full(num_ops, fill) if given is None else given
            most = num_ops if column == "copy_of" else end
            what = f"{where}: ops.{column}"
            put(self, column, whole(values, num_ops, what, "op", min(fill, 0), most))
        flops = np.zeros(num_ops) if self.flops is None else self.flops
        put(self, "flops", real(flops, num_ops, f"{where}: ops.flops"))
        if not np.isfinite(self.flops).all():
            raise PlacetoError(f"{where}: ops.flops has an infinite value; give a finite number")
        seconds = {
            str(kind): real(column, num_ops, f"{where}: op_seconds.{kind}")
            for kind, column in self.op_seconds.items()
        }
        put(self, "op_seconds", seconds)
        producer = whole(
            self.tensor_producer, None, f"{where}: tensors.producer", "tensor", 0, num_ops
        )
        put(self, "tensor_producer", producer)
        num_tensors = len(producer)
        tensor_bytes = whole(self.tensor_bytes, num_tensors, f"{where}: tensors.bytes", "tensor", 0)
        put(self, "tensor_bytes", tensor_bytes)
        tensor = whole(self.edge_tensor, None, f"{where}: edges.tensor", "edge", 0, num_tensors)
        consumer = whole(
            self.edge_consumer, len(tensor), f"{where}: edges.consumer", "edge", 0, num_ops
        )
        key = tensor * num_ops + consumer
        if (key[1:] <= key[:-1]).any():
            key = np.unique(key)
            tensor, consumer = key // num_ops, key % num_ops
            tensor.flags.writeable = consumer.flags.writeable = False
        put(self, "edge_tensor", tensor)
        put(self, "edge_consumer", consumer)
        _check_sums(self, where)
        self._check_copies(where)
        if len(set(self.op_names)) != num_ops:
            seen: set[str] = set()
            twice = next(n for n in self.op_names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
            raise PlacetoError(f"{where}: op name {twice!r} stands twice; names must be unique")
        self._check_acyclic(where)

    def _check_copies(self, where: str) -> None:
        copies = np.flatnonzero(self.copy_of >= 0)
        first = self.copy_of[copies]
        wrong = (self.microbatch[copies] < 1) | (self.microbatch[first] != 0)
        if wrong.any():
            op, other = copies[wrong][0], first[wrong][0]
            raise PlacetoError(
                f"{where}: ops.copy_of[{op}] is {other}: op {op} is of microbatch "
                f"{self.microbatch[op]}, and op {other} of {self.microbatch[other]}; expected an "
                "op of a microbatch from 1, and one of microbatch 0"
            )

    def _check_acyclic(self, where: str) -> None:
        sources, targets = self.op_edges
        if (sources < targets).all():
            return
        inside = levels(self.num_ops, sources, targets) < 0
        if not inside.any():
            return
        # Every op that no order reaches has a predecessor that none reaches either, so walking
        # backwards among them must come round to an op seen before: that stretch is a cycle.
        keep = inside[sources] & inside[targets]
        parent = dict(zip(targets[keep].tolist(), sources[keep].tolist(), strict=True))
        path = [int(np.argmax(inside))]
        seen = set(path)
        while (before := parent[path[-1]]) not in seen:
            path.append(before)
            seen.add(before)
        cycle = [*path[path.index(before) :], before][::-1]
        shown = " -> ".join(self.op_names[op] for op in cycle[:5])
        dots = "" if len(cycle) <= 5 else f" -> … ({len(cycle) - 1} ops)"
        raise PlacetoError(f"{where}: has a cycle: {shown}{dots}; a training step must have none")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComputationGraph):
            return NotImplemented
        compared = [f.name for f in fields(self) if f.compare]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in compared)

    __hash__ = None  # type: ignore[assignment]

    @property
    def num_ops(self) -> int:
        """How many ops there are."""
        return len(self.op_names)

    @property
    def num_tensors(self) -> int:
        """How many tensors there are, control dependencies included."""
        return len(self.tensor_producer)

    @property
    def num_edges(self) -> int:
        """How many (tensor, consumer) pairs there are."""
        return len(self.edge_tensor)

    @cached_property
    def num_microbatches(self) -> int:
        """How many microbatches a pipelined step has; 1 if it is none."""
        return max(int(self.microbatch.max()) + 1, 1)

    @property
    def batch(self) -> int | None:
        """How many examples a step has, all microbatches together; None where it is not known.

        It is `meta["batch"]`, which extraction writes.
        """
        batch = self.meta.get("batch")
        return batch if type(batch) is int and batch > 0 else None

    @cached_property
    def is_forward(self) -> Bools:
        """(num_ops,) whether an op is of a forward pass, or of none."""
        return np.asarray(self.phase == FORWARD)

    @cached_property
    def op_edges(self) -> tuple[Ints, Ints]:
        """Producer and consumer op of every edge, two (num_edges,) arrays."""
        return self.tensor_producer[self.edge_tensor], self.edge_consumer

    @cached_property
    def inputs(self) -> tuple[Ints, Ints]:
        """Compressed rows of each op's edges: start (num_ops + 1,), edges (num_edges,)."""
        return compressed(self.num_ops, self.edge_consumer, np.arange(self.num_edges))

    @cached_property
    def topological_order(self) -> Ints:
        """(num_ops,) ops so that producers come before consumers; lowest number first."""
        sources, targets = self.op_edges
        return topological_order(self.num_ops, sources, targets)


def _check_sums(graph: ComputationGraph, where: str) -> None:
    """Checks that sums of sizes and of times stay numbers that can be reckoned with."""
    sizes = (graph.param_bytes, graph.temp_bytes, graph.tensor_bytes)
    if sum(float(column.sum(dtype=np.float64)) for column in sizes) > LARGEST:
        raise PlacetoError(f"{where}: parameters, outputs and temporary bytes exceed 2**62 in all")
    for kind, column in graph.op_seconds.items():
        with np.errstate(over="ignore"):
            total = column[np.isfinite(column)].sum()
        if total > MOST_SECONDS:
            raise PlacetoError(
                f"{where}: op_seconds.{kind} add up to {total:.3g} s, expected at most "
                f"{MOST_SECONDS:g}"
            )


class OpColumns(Document):
    """Columns of the ops of a graph file, see `ComputationGraph`."""

    op_names: list[str] = msgspec.field(name="name")
    op_types: list[str] = msgspec.field(name="type")
    param_bytes: Column | None = None
    temp_bytes: Column | None = None
    colocation: Column | None = None
    microbatch: Column | None = None
    copy_of: Column | None = None
    phase: Column | None = None
    flops: list[float] | None = None


class TensorColumns(Document):
    """Columns of the tensors of a graph file."""

    tensor_producer: Column = msgspec.field(name="producer")
    tensor_bytes: Column = msgspec.field(name="bytes")


class EdgeColumns(Document):
    """Columns of the edges of a graph file: who consumes which tensor."""

    edge_tensor: Column = msgspec.field(name="tensor")
    edge_consumer: Column = msgspec.field(name="consumer")


class GraphDocument(Document, kw_only=True):
    """A graph file; see `ComputationGraph`.

    Attributes:
        name: what the graph is called.
        meta: anything else.
        ops: a value an op in each column.
        op_seconds: device kind -> seconds of each op, null where the kind cannot run it.
        tensors: a value a tensor.
        edges: a value an edge.
    """

    format: Literal["placeto.graph"] = FORMAT
    version: int = VERSION
    name: str
    meta: dict[str, Any] = msgspec.field(default_factory=dict)
    ops: OpColumns
    op_seconds: dict[str, list[float | None]]
    tensors: TensorColumns
    edges: EdgeColumns


def to_document(graph: ComputationGraph) -> dict[str, Any]:
    """The graph as the columnar JSON document of a graph file."""
    seconds = {
        kind: [None if value == np.inf else value for value in column.tolist()]
        for kind, column in graph.op_seconds.items()
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "meta": dict(graph.meta),
        "ops": _table(graph, OpColumns),
        "op_seconds": seconds,
        "tensors": _table(graph, TensorColumns),
        "edges": _table(graph, EdgeColumns),
    }


def _table(graph: ComputationGraph, kind: type[Document]) -> dict[str, list[Any]]:
    lists = {}
    for name, written in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        column = getattr(graph, name)
        if name in _OF_PIPELINES and (column == _WHOLE_COLUMNS[name][0]).all():
            continue  # as it is where it is left out
        lists[written] = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return lists


def from_document(document: Any, where: str, folder: Path | None = None) -> ComputationGraph:
    """The graph of a columnar JSON document, called `where` in error messages.

    Raises:
        PlacetoError: a field is missing, of the wrong type, or inconsistent.
    """
    check_format(document, FORMAT, VERSION, where)
    return _graph(from_value(document, GraphDocument, where), where, folder)


def save_graph(graph: ComputationGraph, path: str | Path) -> None:
    """Writes a graph file (`.json` or `.json.gz`); the same graph gives the same bytes.

    Raises:
        PlacetoError: the file cannot be written, or `meta` is not JSON.
    """
    write_json(path, to_document(graph))


def load_graph(source: str | Path) -> ComputationGraph:
    """Reads a bundled graph by name, or a graph file by path.

    Raises:
        PlacetoError: no such graph or file, or it is not a valid graph file.
    """
    path = find("graphs", (".json.gz", ".json"), source)
    document = read_document(path, GraphDocument, FORMAT, VERSION, str(source))
    return _graph(document, str(source), path.resolve().parent)


def _graph(document: GraphDocument, where: str, folder: Path | None) -> ComputationGraph:
    tables = (document.ops, document.tensors, document.edges)
    fields = {name: column for table in tables for name, column in asdict(table).items()}
    fields["op_seconds"] = {
        kind: np.array([np.inf if value is None else value for value in column], dtype=np.float64)
        for kind, column in document.op_seconds.items()
    }
    try:
        return ComputationGraph(name=document.name, meta=document.meta, folder=folder, **fields)
    except PlacetoError as error:
        raise PlacetoError(f"{where}: {error}") from error


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, np.ndarray):
        return np.array_equal(value, other)
    if isinstance(value, Mapping):
        return value.keys() == other.keys() and all(_equal(value[k], other[k]) for k in value)
    return bool(value == other)
