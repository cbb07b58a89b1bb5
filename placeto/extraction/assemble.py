"""From an optimized training step to the computation graph with its costs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.extraction.colocation import colocation_keys
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.extraction.functional import functional_work
from placeto.extraction.op_kinds import FREE_OPS, gpu_can_run
from placeto.extraction.shapes import infer_outputs
from placeto.extraction.step import TrainingStep, op_of
from placeto.extraction.variables import handles, update_bytes, variable_bytes
from placeto.extraction.work import Work, measure_work
from placeto.graph import ComputationGraph
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

# Ops that write a variable.
_WRITES = re.compile(
    r"Assign|(Resource)?(Sparse)?Apply[A-Z]|ResourceScatter|"
    r"Scatter(Nd)?(Add|Div|Max|Min|Mul|Sub|Update)"
)
# Ops that compute much; Grappler has formulas for others, and for most forms of Einsum.
_COMPUTE = frozenset(
    {
        "BatchMatMulV3",
        "Conv3D",
        "Conv3DBackpropFilterV2",
        "Conv3DBackpropInputV2",
        "Einsum",
    }
)


def assemble(step: TrainingStep, meta: dict[str, Any], progress: Progress) -> ComputationGraph:
    """The computation graph of an optimized step, ops in the order of its nodes.

    Args:
        step: a training step with nodes in topological order.
        meta: what is known of it; sizes that stay unknown are added to its `warnings`.
        progress: called with one line a stage.
    """
    nodes = step.graph_def.node
    progress(f"inferring the sizes of the outputs of {len(nodes)} ops")
    outputs = infer_outputs(step)
    warnings = list(meta.get("warnings", ()))
    if outputs.unknown:
        shown = ", ".join(outputs.unknown[:20]) + (", …" if len(outputs.unknown) > 20 else "")
        warnings.append(
            f"{len(outputs.unknown)} outputs of unknown size, each unknown dimension counted "
            f"as 1: {shown}"
        )
    progress("estimating costs with Grappler's analytic model")
    taken = handles(step.graph_def)
    inside, placed_whole = functional_work(step)
    warnings += placed_whole
    moved = update_bytes(step.graph_def, taken, outputs.num_bytes)
    if not any(_WRITES.match(node.op) for node in nodes):
        warnings.append("no op writes a variable: this is not a training step")
    measured = measure_work(step)
    if unknown := _not_counted(nodes, measured.flops):
        warnings.append(
            "ops that count as memory traffic alone, for want of a formula: " + ", ".join(unknown)
        )
    work = _corrected(step, measured, moved, inside)
    runs_on_gpu = np.array([gpu_can_run(node) for node in nodes])
    seconds = {
        kind.name: np.where(runs_on_gpu | (not kind.is_gpu), work.seconds(kind), np.inf)
        for kind in DEVICE_KINDS
    }
    return ComputationGraph(
        name=step.name,
        op_names=[node.name for node in nodes],
        op_types=[node.op for node in nodes],
        op_seconds=seconds,
        **_tensors(step.graph_def, outputs.num_bytes),
        param_bytes=np.array(
            [
                variable_bytes(node) if node.op in ("VarHandleOp", "VariableV2") else 0
                for node in nodes
            ]
        ),
        temp_bytes=work.temp_bytes,
        flops=work.flops,
        colocation=colocation_keys(step.graph_def, taken),
        meta={**meta, "warnings": warnings},
    )


def _not_counted(nodes: Iterable[NodeDef], flops: NDArray[np.float64]) -> list[str]:
    """Types of ops that compute much, and whose operations Grappler does not know."""
    return sorted(
        {
            node.op
            for node, operations in zip(nodes, flops.tolist(), strict=True)
            if node.op in _COMPUTE and not operations
        }
    )


def _corrected(
    step: TrainingStep,
    work: Work,
    updates: Mapping[str, int],
    inside: Mapping[str, tuple[float, float]],
) -> Work:
    flops, moved = work.flops.copy(), work.moved_bytes.copy()
    for position, node in enumerate(step.graph_def.node):
        if node.op in FREE_OPS:
            flops[position] = moved[position] = 0.0
        elif node.name in inside:
            flops[position], moved[position] = inside[node.name]
        elif node.name in updates:
            moved[position] = updates[node.name]
    return Work(flops, moved, work.temp_bytes)


def _tensors(graph_def: GraphDef, outputs: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    index = {node.name: position for position, node in enumerate(graph_def.node)}
    consumers: dict[tuple[int, int], list[int]] = {
        (index[name], port): []
        for name, sizes in outputs.items()
        for port, size in enumerate(sizes)
        if size > 0
    }
    for position, node in enumerate(graph_def.node):
        for tensor in node.input:
            name, _, port = tensor.partition(":")
            source = (index[op_of(tensor)], -1 if name.startswith("^") else int(port or 0))
            consumers.setdefault(source, []).append(position)
    rows = sorted(consumers)
    op_names = [node.name for node in graph_def.node]
    return {
        "tensor_producer": np.array([op for op, _ in rows], dtype=np.int64),
        "tensor_bytes": np.array(
            [0 if port < 0 else outputs[op_names[op]][port] for op, port in rows], dtype=np.int64
        ),
        "edge_tensor": np.array(
            [row for row, key in enumerate(rows) for _ in consumers[key]], dtype=np.int64
        ),
        "edge_consumer": np.array([op for key in rows for op in consumers[key]], dtype=np.int64),
    }
