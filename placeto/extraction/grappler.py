"""TensorFlow's graph optimizer, limited to what holds on any device."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING

from placeto.extraction.reads import merge_reads
from placeto.extraction.step import TrainingStep, op_of
from placeto.extraction.unit_device import unit_device
from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

# Layout, remapper and fusions choose kernels for one kind of device, so they stay out.
_PASSES = ("function", "debug_stripper", "pruning", "constfold", "dependency", "pruning")
_INLINE_ONLY = ("function", "debug_stripper", "pruning")


def meta_graph(graph_def: GraphDef, roots: Iterable[str]) -> MetaGraphDef:
    """A graph and what must run of it, in the form that Grappler takes."""
    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

    meta = MetaGraphDef(graph_def=graph_def)
    meta.collection_def["train_op"].node_list.value.extend(roots)
    return meta


def optimized(step: TrainingStep, *, fold: bool = True) -> TrainingStep:
    """The step as it would run: functions inlined, pruned, constants folded.

    Args:
        step: a training step.
        fold: fold constants, simplify control dependencies and merge equal reads of a variable;
            otherwise only functions are inlined and what no fetch needs is pruned.

    Returns:
        The step with its nodes in a topological order that depends on nothing but the step.

    Raises:
        PlacetoError: Grappler rejects the graph.
    """
    from tensorflow.core.protobuf.config_pb2 import ConfigProto
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
    from tensorflow.python.framework import errors
    from tensorflow.python.grappler import tf_optimizer

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
    result = in_order(result, rank)
    if fold:
        kept = {op_of(root) for root in step.roots}
        result = in_order(merge_reads(result, kept), rank)
    return replace(step, graph_def=result)


def in_order(graph_def: GraphDef, rank: dict[str, int]) -> GraphDef:
    """The same graph with nodes in topological order, canonical in everything that may vary.

    Args:
        graph_def: a graph without cycles.
        rank: node -> its place among nodes that are free to go next; nodes without one come
            last, by name.

    Raises:
        PlacetoError: the graph has a cycle (a loop of TensorFlow 1's control flow).
    """
    from tensorflow.core.framework.graph_pb2 import GraphDef

    nodes = {node.name: node for node in graph_def.node}
    consumers: dict[str, list[str]] = {name: [] for name in nodes}
    waiting = {}
    for name, node in nodes.items():
        data = [tensor for tensor in node.input if not tensor.startswith("^")]
        control = sorted({tensor for tensor in node.input if tensor.startswith("^")})
        node.ClearField("input")
        node.input.extend(data + control)
        sources = {op_of(tensor) for tensor in node.input}
        waiting[name] = len(sources)
        for source in sources:
            consumers[source].append(name)
    last = len(nodes) + len(rank)
    free = [(rank.get(name, last), name) for name, count in waiting.items() if count == 0]
    heapq.heapify(free)
    ordered = GraphDef(versions=graph_def.versions, library=graph_def.library)
    while free:
        _, name = heapq.heappop(free)
        ordered.node.append(nodes[name])
        for consumer in consumers[name]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                heapq.heappush(free, (rank.get(consumer, last), consumer))
    if len(ordered.node) < len(nodes):
        stuck = next(name for name, count in waiting.items() if count > 0)
        raise PlacetoError(
            f"{stuck}: the graph has a loop; unroll it (Keras: unroll=True), since a training step "
            "must be acyclic"
        )
    return ordered
