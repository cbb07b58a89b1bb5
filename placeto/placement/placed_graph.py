"""A TensorFlow graph with a device on every op, and its ops in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tensorflow.core.framework.graph_pb2 import GraphDef


ORDERED, UNORDERED = ORDERS = ("fifo", "none")


def check_order(order: str) -> None:
    """Raises `PlacetoError` for what is no order."""
    if order not in ORDERS:
        raise PlacetoError(f"order is {order!r}, expected {' or '.join(ORDERS)}")


def placed_graph_def(graph_def: GraphDef, op_devices: Mapping[str, str]) -> GraphDef:
    """A copy of a graph in which every op has a device.

    Ops that were not placed, such as initializers, go where the variable is whose handle they
    take, or else with an op that consumes what they produce; what is then left (an op that only
    waits for others) goes with an op that it waits for. Devices have TensorFlow's names.

    Raises:
        PlacetoError: the graph lacks an op that was placed.
    """
    placed = type(graph_def)()
    placed.CopyFrom(graph_def)
    devices = dict(op_devices)
    names = {node.name for node in placed.node}
    if missing := [name for name in devices if name not in names]:
        raise PlacetoError(
            f"the GraphDef lacks {len(missing)} of {len(devices)} placed ops, such as "
            f"{missing[0]!r}; is it that of another graph?"
        )
    rest = [node for node in placed.node if node.name not in devices]
    handles = {node.name for node in placed.node if node.op in ("VarHandleOp", "VariableV2")}
    for node in rest:
        for tensor in node.input:
            if tensor in handles and tensor in devices:
                devices.setdefault(node.name, devices[tensor])
    for node in reversed(list(placed.node)):
        for tensor in node.input:
            if node.name in devices and not tensor.startswith("^"):
                devices.setdefault(_op_of(tensor), devices[node.name])
    first = next(iter(op_devices.values()))
    for node in rest:
        known = (devices[_op_of(tensor)] for tensor in node.input if _op_of(tensor) in devices)
        devices.setdefault(node.name, next(known, first))
    for node in placed.node:
        node.device = devices[node.name]
    return placed


def add_control_edges(graph_def: GraphDef, edges: Iterable[tuple[str, str]]) -> None:
    """Lets ops of a graph wait for others, by name: which must end before which other begins."""
    nodes = {node.name: node for node in graph_def.node}
    for before, after in edges:
        nodes[after].input.append(f"^{before}")


def _op_of(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]
