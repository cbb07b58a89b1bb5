"""TensorFlow's graph optimizer, limited to what holds on any device."""

import contextlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import Any

import networkx as nx
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.protobuf.config_pb2 import ConfigProto
from tensorflow.core.protobuf.device_properties_pb2 import DeviceProperties, NamedDevice
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.framework import errors
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.grappler.cluster import Cluster

from placeto.extraction.step import TrainingStep, op_of, renamed
from placeto.support.errors import PlacetoError

# Layout, remapper and fusions choose kernels for one kind of device, so they stay out.
_PASSES = ("function", "debug_stripper", "pruning", "constfold", "dependency", "pruning")
_INLINE_ONLY = ("function", "debug_stripper", "pruning")


@contextlib.contextmanager
def unit_device() -> Iterator[Any]:
    """A Grappler cluster of one device that does 1 operation and moves 1 byte per microsecond.

    It is what Grappler works for, so that results depend on no real machine.
    """
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


def meta_graph(graph_def: GraphDef, roots: Iterable[str]) -> MetaGraphDef:
    """A graph and what must run of it, in the form that Grappler takes."""
    meta = MetaGraphDef(graph_def=graph_def)
    meta.collection_def["train_op"].node_list.value.extend(roots)
    return meta


def optimized(step: TrainingStep, *, fold: bool = True) -> TrainingStep:
    """The step as it would run: functions inlined, pruned, constants folded.

    Its nodes are in a topological order that depends on nothing but the step. Without `fold`, only
    functions are inlined and what no fetch needs is pruned; with it, control dependencies are
    simplified and equal reads of a variable merged, too.

    Raises:
        PlacetoError: Grappler rejects the graph.
    """
    config = ConfigProto()
    options = config.graph_options.rewrite_options
    options.optimizers.extend(_PASSES if fold else _INLINE_ONLY)
    options.function_optimization = RewriterConfig.AGGRESSIVE
    options.meta_optimizer_iterations = RewriterConfig.ONE
    options.min_graph_nodes = -1
    options.fail_on_optimizer_errors = True
    try:
        with unit_device() as cluster:
            result = tf_optimizer.OptimizeGraph(
                config, meta_graph(step.graph_def, step.roots), verbose=False, cluster=cluster
            )
    except (errors.OpError, ValueError) as error:
        line = str(error).strip().splitlines()[0]
        raise PlacetoError(f"{step.name}: Grappler cannot optimize the graph: {line}") from error
    rank = {node.name: index for index, node in enumerate(step.graph_def.node)}
    result = _in_order(result, rank)
    if fold:
        result = _in_order(_merge_reads(result, {op_of(root) for root in step.roots}), rank)
    return replace(step, graph_def=result)


def _in_order(graph_def: GraphDef, rank: dict[str, int]) -> GraphDef:
    """The same graph with nodes in topological order, canonical in everything that may vary.

    Of nodes that are free to go next, the one of the lowest rank goes first; those without one come
    last, by name. A cycle, which is refused, is a loop of TensorFlow 1's control flow.
    """
    nodes = {node.name: node for node in graph_def.node}
    before: nx.DiGraph[str] = nx.DiGraph()
    before.add_nodes_from(nodes)
    for name, node in nodes.items():
        data = [tensor for tensor in node.input if not tensor.startswith("^")]
        control = sorted({tensor for tensor in node.input if tensor.startswith("^")})
        node.input[:] = data + control
        before.add_edges_from((op_of(tensor), name) for tensor in node.input)
    last = len(nodes) + len(rank)

    def place(name: str) -> tuple[int, str]:
        return rank.get(name, last), name

    ordered = GraphDef(versions=graph_def.versions, library=graph_def.library)
    try:
        for name in nx.lexicographical_topological_sort(before, place):
            ordered.node.append(nodes.pop(name))
    except nx.NetworkXUnfeasible as error:
        raise PlacetoError(
            f"{next(iter(nodes))}: the graph has a loop; unroll it (Keras: unroll=True), since a "
            "training step must be acyclic"
        ) from error
    return ordered


def _merge_reads(graph_def: GraphDef, kept: Container[str]) -> GraphDef:
    """The graph with equal reads of a variable made one.

    Every use of a variable in a traced function reads it again. Reads that wait for the same ops
    see the same value, and a write that must come after one of them is made to come after all.
    Their outputs are one buffer when the graph runs, but would count as many when placed. Ops in
    `kept` keep their names.
    """
    first: dict[tuple[str, ...], str] = {}
    names: dict[str, str] = {}
    merged = GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.op == "ReadVariableOp" and node.name not in kept:
            known = first.setdefault((node.input[0], *sorted(node.input[1:])), node.name)
            if known != node.name:
                names[node.name] = known
                continue
        merged.node.append(node)
    for node in merged.node:
        node.input[:] = [renamed(tensor, names) for tensor in node.input]
    return merged
