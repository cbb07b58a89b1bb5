"""Computation graphs from networkx and to networkx."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import networkx as nx
import numpy as np

from placeto.graph import ComputationGraph
from placeto.support.errors import PlacetoError

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
    nodes: dict[Hashable, Mapping[str, Any]] = dict(graph.nodes(data=True))
    number = {node: op for op, node in enumerate(nodes)}
    places = [f"{where}: node {str(node)!r}" for node in nodes]
    _check_names(nodes.values(), places, _NODE)

    sizes: dict[tuple[int, Any], int] = {}
    readers: list[tuple[tuple[int, Any], int]] = []
    for position, (source, target, edge) in enumerate(graph.edges(data=True)):
        place = f"{where}: edge {str(source)!r} -> {str(target)!r}"
        _check_names([edge], [place], _EDGE)
        key = (number[source], edge.get("tensor", _Own(position)))
        _put(sizes, key, _whole(edge, "bytes", 0, place), place)
        readers.append((key, number[target]))
    for op, (place, node) in enumerate(zip(places, nodes.values(), strict=True)):
        unread = node.get("unread_outputs", {})
        if not isinstance(unread, Mapping):
            raise PlacetoError(f"{place}: unread_outputs is {unread!r}, expected a dict")
        for tensor in unread:
            size = _whole(unread, tensor, 0, f"{place}: unread_outputs")
            _put(sizes, (op, tensor), size, f"{place}: unread_outputs")
    # Sorting is stable: tensors without a number stay in the order of their edges.
    ordered = sorted(sizes, key=lambda key: key[1] if _is_whole(key[1]) else np.inf)
    tensors = {key: index for index, key in enumerate(ordered)}

    def column(attribute: str, default: int) -> np.ndarray[Any, Any]:
        pairs = zip(nodes.values(), places, strict=True)
        return np.array([_whole(node, attribute, default, place) for node, place in pairs])

    return ComputationGraph(
        name=name,
        op_names=[str(node) for node in nodes],
        op_types=[node.get("type", "Op") for node in nodes.values()],
        op_seconds=_op_seconds(list(nodes.values()), places, kinds),
        tensor_producer=np.array([op for op, _ in ordered], dtype=np.int64),
        tensor_bytes=np.array([sizes[key] for key in ordered], dtype=np.int64),
        edge_tensor=np.array([tensors[key] for key, _ in readers], dtype=np.int64),
        edge_consumer=np.array([consumer for _, consumer in readers], dtype=np.int64),
        param_bytes=column("param_bytes", 0),
        temp_bytes=column("temp_bytes", 0),
        colocation=column("colocation", -1),
        flops=np.array(
            [
                _real(node.get("flops", 0), f"{place}: flops")
                for node, place in zip(nodes.values(), places, strict=True)
            ]
        ),
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


def _check_names(
    attributes: Iterable[Mapping[str, Any]], places: Sequence[str], known: frozenset[str]
) -> None:
    """Refuses what would be an attribute but for a slip: a cost that nobody reads."""
    seen: set[Any] = set()
    for given, place in zip(attributes, places, strict=True):
        for name in given.keys() - known - seen:
            seen.add(name)
            if isinstance(name, str) and (close := get_close_matches(name, known, 1, 0.8)):
                raise PlacetoError(f"{place}: attribute {name!r}: did you mean {close[0]!r}?")


class _Own:
    """The key of a tensor that one edge has to itself."""

    def __init__(self, position: int) -> None:
        self.position = position


def _put(sizes: dict[tuple[int, Any], int], key: tuple[int, Any], size: int, place: str) -> None:
    try:
        known = sizes.setdefault(key, size)
    except TypeError as error:
        raise PlacetoError(f"{place}: tensor is {key[1]!r}, expected a number or text") from error
    if known != size:
        raise PlacetoError(
            f"{place}: tensor {key[1]!r} has {size} bytes here and {known} on another edge"
        )


def _op_seconds(
    nodes: Sequence[Mapping[str, Any]], places: Sequence[str], kinds: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    given = []
    for node, place in zip(nodes, places, strict=True):
        if "seconds" not in node:
            raise PlacetoError(f"{place}: has no attribute 'seconds', a number or a dict of kinds")
        given.append(node["seconds"])
    found = dict.fromkeys(
        kind for seconds in given if isinstance(seconds, Mapping) for kind in seconds
    )
    if not any(isinstance(seconds, Mapping) for seconds in given):
        if isinstance(kinds, str):
            raise PlacetoError(f"kinds is {kinds!r}, expected a list, such as [{kinds!r}]")
        found = dict.fromkeys(kinds)
    columns: dict[str, list[float]] = {kind: [] for kind in found}
    for seconds, place in zip(given, places, strict=True):
        for kind in found:
            if isinstance(seconds, Mapping) and kind not in seconds:
                raise PlacetoError(
                    f"{place}: seconds has no kind {kind!r}, which another node has; "
                    "give inf where a kind cannot run the op"
                )
            value = seconds[kind] if isinstance(seconds, Mapping) else seconds
            columns[kind].append(_real(value, f"{place}: seconds"))
    return {kind: np.array(column, dtype=np.float64) for kind, column in columns.items()}


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
