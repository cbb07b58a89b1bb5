"""A TensorFlow graph with a device on every op, and its ops in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tensorflow.core.framework.graph_pb2 import GraphDef


ORDERED, UNORDERED = ORDERS = ("fifo", "none")

# What oneDNN merges with what made its first input, by what that one's type has in its name: any
# for BiasAddGrad, which is merged with a convolution's gradient that reads the same.
_MERGED = {"BiasAdd": "Conv", "BiasAddGrad": "", "Conv2D": "Pad"}
_APART = "placeto_apart"


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
    """Lets ops of a graph wait for others, by name: which must end before which other begins.

    Where oneDNN is at work (on CPUs that have AVX512_VNNI, by default), TensorFlow merges two ops
    into one and gives it the edges of both. Where one of them comes before something that comes
    before the other, that is a cycle, and the executor, which finds no op ready, ends the step as
    if it were done (seen with 2.21). So what would be merged is kept apart by an Identity.
    """
    nodes = {node.name: node for node in graph_def.node}
    for before, after in edges:
        nodes[after].input.append(f"^{before}")
    for node in list(graph_def.node):
        if node.op in _MERGED and _MERGED[node.op] in nodes[_op_of(node.input[0])].op:
            apart = graph_def.node.add(name=f"{_APART}/{node.name}", op="Identity")
            apart.device = node.device
            apart.input.append(node.input[0])
            apart.attr["T"].CopyFrom(node.attr["T"])
            node.input[0] = apart.name


def _op_of(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]
