"""From a source of TensorFlow's to the computation graph with its costs, and the graph to run."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from placeto.extraction.device_kinds import DEVICE_KINDS, cost_meta
from placeto.extraction.functional import functional_work
from placeto.extraction.grappler import optimized
from placeto.extraction.initializers import INITIALIZER, with_initializers
from placeto.extraction.loaders import load_step
from placeto.extraction.microbatches import microbatch_columns
from placeto.extraction.op_kinds import COMPUTE_OPS, CONVOLUTIONS, FREE_OPS, WRITES, gpu_can_run
from placeto.extraction.result import Extraction, batch_meta, some, tensor_columns
from placeto.extraction.source import Source
from placeto.extraction.step import op_and_port
from placeto.extraction.variables import colocation_keys, handles, update_bytes, variable_bytes
from placeto.extraction.work import measure_work, output_bytes
from placeto.graph import ComputationGraph
from placeto.support.progress import Progress

_COSTS = (
    "Grappler's analytic model: operations / peak float32 FLOP/s + bytes moved / peak memory "
    "bandwidth, both from the data sheet; variable updates by passes over the variable's bytes"
)


def extract_step(source: Source, kind: str, optimize: bool, say: Progress) -> Extraction:
    """The graph of a training step of TensorFlow, ops in a topological order; see `extract`.

    Args:
        source: a parsed source, of a kind of `LOADERS`.
        kind: which.
        optimize: whether Grappler folds constants.
        say: told of each stage.
    """
    say(f"tracing {source.text}")
    traced = load_step(source, kind)
    say(f"optimizing {len(traced.graph_def.node)} ops with Grappler")
    step = optimized(traced, fold=optimize)
    nodes = step.graph_def.node
    say(f"inferring the sizes of the outputs of {len(nodes)} ops")
    sizes, unknown = output_bytes(step)
    warnings = list(step.warnings)
    if unknown:
        warnings.append(
            f"{len(unknown)} outputs of unknown size, each unknown dimension counted as 1: "
            f"{some(unknown, 20)}"
        )
    say("estimating costs with Grappler's analytic model")
    inside, placed_whole = functional_work(step)
    warnings += placed_whole
    types = [node.op for node in nodes]
    if not any(map(WRITES.match, types)):
        warnings.append("no op writes a variable: this is not a training step")
    work = measure_work(step)
    operations = zip(types, work.flops.tolist(), strict=True)
    if uncounted := sorted({op for op, flops in operations if op in COMPUTE_OPS and not flops}):
        warnings.append(
            f"ops that count as memory traffic alone, for want of a formula: {', '.join(uncounted)}"
        )
    taken = handles(step.graph_def)
    updates = update_bytes(step.graph_def, taken, sizes)
    for op, node in enumerate(nodes):
        if node.op in FREE_OPS:
            work.flops[op] = work.moved_bytes[op] = 0.0
        elif node.name in inside:
            work.flops[op], work.moved_bytes[op] = inside[node.name]
        elif node.name in updates:
            work.moved_bytes[op] = updates[node.name]
    runs_on_gpu = np.array([gpu_can_run(node) for node in nodes])
    graph = ComputationGraph(
        name=step.name,
        op_names=[node.name for node in nodes],
        op_types=types,
        op_seconds={
            kind.name: np.where(runs_on_gpu | (not kind.is_gpu), work.seconds(kind), np.inf)
            for kind in DEVICE_KINDS
        },
        **_tensors(nodes, sizes),
        param_bytes=np.array(
            [variable_bytes(x) if x.op in ("VarHandleOp", "VariableV2") else 0 for x in nodes]
        ),
        temp_bytes=work.temp_bytes,
        flops=work.flops,
        colocation=colocation_keys(step.graph_def, taken),
        **(microbatch_columns([node.name for node in nodes], step.phases) if step.phases else {}),
        meta={
            "source": source.text,
            **batch_meta(step.examples),
            "kind": "sequence" if CONVOLUTIONS.isdisjoint(types) else "vision",
            "versions": {"tensorflow": tf.__version__, "keras": keras.__version__},
            "optimized": optimize,
            "ops_traced": len(traced.graph_def.node),
            "ops_placed": len(nodes),
            "costs": cost_meta(
                _COSTS, "as Grappler's analytic model reports it, which knows of none"
            ),
            "run": {
                "fetches": list(step.fetches),
                "targets": list(step.targets),
                "initializer": INITIALIZER,
                "inputs": [_input(node) for node in nodes if node.op == "Placeholder"],
            },
            "warnings": warnings,
        },
    )
    say(f"{graph.num_ops} ops, {graph.num_edges} edges")
    return Extraction(graph, with_initializers(step))


def _input(node: NodeDef) -> dict[str, Any]:
    return {
        "name": node.name,
        "dtype": tf.as_dtype(node.attr["dtype"].type).name,
        "shape": [dim.size for dim in node.attr["shape"].shape.dim],
    }


def _tensors(nodes: Sequence[NodeDef], sizes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    index = {node.name: op for op, node in enumerate(nodes)}
    reads = [
        ((index[name], port), op)
        for op, node in enumerate(nodes)
        for name, port in map(op_and_port, node.input)
    ]
    tensors = dict.fromkeys((tensor for tensor, _ in reads), 0)
    for name, ports in sizes.items():
        tensors |= {(index[name], port): size for port, size in enumerate(ports) if size > 0}
    return tensor_columns(dict(sorted(tensors.items())), reads)
