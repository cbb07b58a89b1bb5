"""Computation graphs from networkx and to networkx."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import networkx as nx
import numpy as np

from placeto.extraction.result import tensor_columns
from placeto.graph import ComputationGraph
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError

_close_names = lru_cache(get_close_matches)
Node = Mapping[str, Any]
_NODE = frozenset(
    {"seconds", "type", "param_bytes", "temp_bytes", "flops", "colocation", "unread_outputs"}
)
_EDGE = frozenset({"bytes", "tensor"})


def from_networkx(
    graph: "nx.DiGraph[Any]", name: str | None = None, *, kinds: Sequence[str] = ("k80",)
) -> ComputationGraph:
    """A computation graph out of a networkx graph, ops in the order of its nodes.

    Attributes of a node: `seconds`, a number or a dict from device kinds (infinite where the kind
    cannot run the op), and, where they are not the default, `type` ("Op"), `param_bytes`,
    `temp_bytes`, `flops` (0), `colocation` (-1) and `unread_outputs` (a dict from tensor keys to
    bytes, for tensors that no op consumes).

    Attributes of an edge: `bytes` (0, a control dependency) and `tensor`: edges from one producer
    with the same key carry one tensor. An edge without the key carries a tensor of its own.
    Tensors whose keys are whole numbers are numbered by their keys, before all others.

    Other attributes are left alone, unless their names are nearly one of these.
    `graph.graph["meta"]`, if any, is the computation graph's.

    Args:
        graph: a DiGraph or MultiDiGraph without cycles; a node's name is its text.
        name: of the computation graph; by default networkx's name of the graph.
        kinds: the device kinds for which the nodes' plain numbers of seconds hold; where a node
            has a dict, they hold for its kinds instead.

    Raises:
        PlacetoError: an attribute is missing, misspelt or of the wrong type, edges that carry one
            tensor differ in bytes, or the graph is not a valid `ComputationGraph` (it has a cycle,
            say).
    """
    name = name or str(graph.graph.get("name", "")) or "networkx"
    where = f"graph {name!r}"
    if not graph.is_directed():
        raise PlacetoError(f"{where}: is undirected, expected a DiGraph or a MultiDiGraph")
    number = {node: op for op, node in enumerate(graph)}
    rows = [(node, f"{where}: node {str(name)!r}") for name, node in graph.nodes(data=True)]
    for node, place in rows:
        _check_names(node, place, _NODE)
    sizes: dict[tuple[int, Any], int] = {}
    reads: list[tuple[tuple[int, Any], int]] = []
    for source, target, edge in graph.edges(data=True):
        place = f"{where}: edge {str(source)!r} -> {str(target)!r}"
        _check_names(edge, place, _EDGE)
        key = (number[source], edge.get("tensor", object()))
        _put(sizes, key, _whole(edge, "bytes", 0, place), place)
        reads.append((key, number[target]))
    for op, (node, place) in enumerate(rows):
        unread = node.get("unread_outputs", {})
        if not isinstance(unread, Mapping):
            raise PlacetoError(f"{place}: unread_outputs is {unread!r}, expected a dict")
        place += ": unread_outputs"
        for tensor in unread:
            _put(sizes, (op, tensor), _whole(unread, tensor, 0, place), place)
    # Sorting is stable: tensors without a number stay in the order of their edges.
    ordered = sorted(sizes, key=lambda key: key[1] if _is_whole(key[1]) else np.inf)

    def column(attribute: str, default: int = 0) -> Ints:
        return np.array([_whole(node, attribute, default, place) for node, place in rows])

    return ComputationGraph(
        name=name,
        op_names=[str(node) for node in graph],
        op_types=[node.get("type", "Op") for node, _ in rows],
        op_seconds=_op_seconds(rows, kinds),
        **tensor_columns({key: sizes[key] for key in ordered}, reads),
        param_bytes=column("param_bytes"),
        temp_bytes=column("temp_bytes"),
        colocation=column("colocation", -1),
        flops=np.array([_real(node.get("flops", 0), f"{place}: flops") for node, place in rows]),
        meta=graph.graph.get("meta", {}),
    )


def to_networkx(graph: ComputationGraph) -> "nx.MultiDiGraph[Any]":
    """A networkx graph with an edge for every (tensor, consumer).

    Args:
        graph: the ops, which become the nodes, by name.

    Returns:
        A graph with the attributes that `from_networkx` reads, which gives an equal graph back.
    """
    result: nx.MultiDiGraph[Any] = nx.MultiDiGraph(name=graph.name, meta=dict(graph.meta))
    for op, name in enumerate(graph.op_names):
        result.add_node(
            name,
            type=graph.op_types[op],
            seconds={kind: float(column[op]) for kind, column in graph.op_seconds.items()},
            param_bytes=int(graph.param_bytes[op]),
            temp_bytes=int(graph.temp_bytes[op]),
            flops=float(graph.flops[op]),
            colocation=int(graph.colocation[op]),
        )
    producers, sizes = graph.tensor_producer.tolist(), graph.tensor_bytes.tolist()
    for tensor in np.setdiff1d(np.arange(graph.num_tensors), graph.edge_tensor).tolist():
        node = result.nodes[graph.op_names[producers[tensor]]]
        node.setdefault("unread_outputs", {})[tensor] = sizes[tensor]
    for tensor, consumer in zip(
        graph.edge_tensor.tolist(), graph.edge_consumer.tolist(), strict=True
    ):
        source, target = graph.op_names[producers[tensor]], graph.op_names[consumer]
        result.add_edge(source, target, bytes=sizes[tensor], tensor=tensor)
    return result


def _check_names(given: Mapping[Any, Any], place: str, known: frozenset[str]) -> None:
    """Refuses what would be an attribute but for a slip: a cost that nobody reads."""
    for name in given.keys() - known:
        if isinstance(name, str) and (close := _close_names(name, known, 1, 0.8)):
            raise PlacetoError(f"{place}: attribute {name!r}: did you mean {close[0]!r}?")


def _put(sizes: dict[tuple[int, Any], int], key: tuple[int, Any], size: int, place: str) -> None:
    try:
        known = sizes.setdefault(key, size)
    except TypeError as error:
        raise PlacetoError(f"{place}: tensor is {key[1]!r}, expected a number or text") from error
    if known != size:
        raise PlacetoError(
            f"{place}: tensor {key[1]!r} has {size} bytes here and {known} on another edge"
        )


def _op_seconds(rows: Sequence[tuple[Node, str]], kinds: Sequence[str]) -> dict[str, Floats]:
    for node, place in rows:
        if "seconds" not in node:
            raise PlacetoError(f"{place}: has no attribute 'seconds', a number or a dict of kinds")
    dicts = [node["seconds"] for node, _ in rows if isinstance(node["seconds"], Mapping)]
    if not dicts and isinstance(kinds, str):
        raise PlacetoError(f"kinds is {kinds!r}, expected a list, such as [{kinds!r}]")
    found = dict.fromkeys(kind for each in dicts for kind in each) if dicts else kinds
    columns = {kind: np.empty(len(rows)) for kind in found}
    for op, (node, place) in enumerate(rows):
        seconds = node["seconds"]
        for kind, column in columns.items():
            if isinstance(seconds, Mapping) and kind not in seconds:
                raise PlacetoError(
                    f"{place}: seconds has no kind {kind!r}, which another node has; "
                    "give inf where a kind cannot run the op"
                )
            value = seconds[kind] if isinstance(seconds, Mapping) else seconds
            column[op] = _real(value, f"{place}: seconds")
    return columns


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _whole(attributes: Mapping[Any, Any], key: Any, default: int, place: str) -> int:
    value = attributes.get(key, default)
    if not _is_whole(value) or not min(default, 0) <= value <= 2**62:
        raise PlacetoError(
            f"{place}: {key} is {value!r}, expected a whole number from {min(default, 0)}"
        )
    return int(value)


def _real(value: Any, where: str) -> float:
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else -1.0
    except OverflowError as error:
        raise PlacetoError(f"{where} is {value!r}, which is too large") from error
    if not number >= 0:
        raise PlacetoError(f"{where} is {value!r}, expected a number from 0")
    return number
