"""`model.onnx?batch=32`: an ONNX file, one op a node."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, NodeProto

from placeto.extraction.device_kinds import ROOFLINE, cost_meta, roofline
from placeto.extraction.onnx.shapes import STANDARD, UNKNOWN, Tensor, load_model, states, tensors
from placeto.extraction.onnx.work import FREE, ROWS, flops
from placeto.extraction.result import Extraction, some, tensor_columns, unique
from placeto.extraction.source import Source
from placeto.graph import ComputationGraph
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress


def extract_file(source: Source, say: Progress) -> Extraction:
    """The graph of an ONNX model: its inference, or whatever step it holds.

    Each node is an op, each input of the model one of type `Input`. A weight is memory of the op
    that reads it (`param_bytes`); of one that several ops read, each has a copy, as it would on a
    device of its own.

    Options: the sizes of the dimensions that the model's inputs leave open, by their names;
    `INPUT.AXIS` for one without.

    Raises:
        PlacetoError: not an ONNX model, an open dimension without a size, or an input of an op that
            is not there.
    """
    say(f"inferring the shapes of {source.target}")
    model = load_model(source)
    known = tensors(model.graph)
    held = states(model.graph)
    inputs = [
        onnx.helper.make_node("Input", [], [info.name], info.name)
        for info in model.graph.input
        if info.name not in held
    ]
    ops = [node for node in model.graph.node if node.op_type != "Constant" or node.input]
    nodes = inputs + ops
    types = [node.op_type for node in nodes]
    taken: dict[str, int] = {}
    names = [unique(node.name or node.op_type, taken) for node in nodes]
    reads = [tuple(dict.fromkeys(_reads(node))) for node in nodes]
    producer = {name: op for op, node in enumerate(nodes) for name in node.output}
    for name, read in zip(names, reads, strict=True):
        if gone := [tensor for tensor in read if tensor not in held and tensor not in producer]:
            raise PlacetoError(
                f"{source.target}: op {name!r} reads {gone[0]!r}, which nothing in the file makes"
            )
    producer.pop("", None)
    operations, moved = np.array([_work(node, known) for node in nodes]).reshape(-1, 2).T
    graph = ComputationGraph(
        name=Path(source.target).stem,
        op_names=names,
        op_types=types,
        op_seconds=roofline(operations, moved),
        **tensor_columns(
            {(op, name): known.get(name, UNKNOWN).bytes for name, op in producer.items()},
            [
                ((producer[name], name), op)
                for op, read in enumerate(reads)
                for name in read
                if name in producer
            ],
        ),
        param_bytes=np.array(
            [
                sum((held[name].bytes for name in read if name in held), _held_inside(node))
                for node, read in zip(nodes, reads, strict=True)
            ]
        ),
        flops=operations,
        meta={
            "source": source.text,
            "kind": "vision" if any("Conv" in kind for kind in types) else "sequence",
            "versions": {"onnx": onnx.__version__},
            "opsets": {each.domain or "ai.onnx": each.version for each in model.opset_import},
            "costs": cost_meta(
                f"{ROOFLINE} matrix products, convolutions, recurrent layers and attention"
            ),
            "warnings": _warnings(ops, known),
        },
    )
    say(f"{graph.num_ops} ops, {graph.num_edges} edges")
    return Extraction(graph, None)


def _reads(node: NodeProto) -> Iterator[str]:
    """Names of the tensors that a node reads, those that its inner graphs take from outside too."""
    yield from filter(None, node.input)
    for graph in _inner(node):
        made = {info.name for info in graph.input} | set(states(graph))
        for each in graph.node:
            yield from (name for name in _reads(each) if name not in made)
            made.update(each.output)
        yield from (info.name for info in graph.output if info.name not in made)


def _held_inside(node: NodeProto) -> int:
    """Bytes of the constants of the graphs inside of an op."""
    return sum(
        sum(state.bytes for state in states(graph).values()) + sum(map(_held_inside, graph.node))
        for graph in _inner(node)
    )


def _inner(node: NodeProto) -> list[GraphProto]:
    return [
        graph
        for attribute in node.attribute
        for graph in (attribute.g, *attribute.graphs)
        if graph.node or graph.output
    ]


def _work(node: NodeProto, known: Mapping[str, Tensor]) -> tuple[float, float]:
    """Operations and bytes moved; of an op with graphs inside of it, those of the dearest one."""
    if inner := _inner(node):
        sides = []
        for graph in inner:
            inside = {**known, **tensors(graph)}
            parts = [_work(each, inside) for each in graph.node]
            sides.append((sum(part[0] for part in parts), sum(part[1] for part in parts)))
        return max(sides, key=lambda side: side[1])
    read = [known.get(name, UNKNOWN) for name in node.input]
    made = [known.get(name, UNKNOWN) for name in node.output]
    if node.domain not in STANDARD:
        return 0.0, float(sum(each.bytes for each in (*read, *made)))
    if node.op_type in (*FREE, "Constant", "Input"):
        return 0.0, 0.0
    operations = flops(node, [each.shape for each in read], [each.shape for each in made])
    written = sum(each.bytes for each in made)
    if node.op_type in ROWS:
        return operations, float(2 * written + sum(each.bytes for each in read[1:]))
    distinct = {name: known.get(name, UNKNOWN).bytes for name in node.input}
    return operations, float(written + sum(distinct.values()))


def _warnings(nodes: Sequence[NodeProto], known: Mapping[str, Tensor]) -> list[str]:
    unknown = [
        name
        for node in nodes
        for name in node.output
        if name and known.get(name, UNKNOWN).shape is None
    ]
    whole = [node.name or node.op_type for node in nodes if _inner(node)]
    foreign = sorted({f"{n.domain}.{n.op_type}" for n in nodes if n.domain not in STANDARD})
    lines = []
    if unknown:
        lines.append(f"{len(unknown)} outputs of unknown size, counted as 0 bytes: {some(unknown)}")
    if whole:
        lines.append(
            f"{len(whole)} ops placed as a whole, what is inside counted once: {some(whole)}"
        )
    if foreign:
        lines.append(f"ops outside of the standard, timed by their bytes alone: {some(foreign)}")
    return lines
