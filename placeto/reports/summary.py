"""What is in a graph, in its groups, and what a cluster could make of it."""

from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from placeto.bounds import critical_path, work_bound
from placeto.cluster import Cluster, Device
from placeto.graph import ComputationGraph
from placeto.grouping import Grouping, group_ops
from placeto.problem import PlacementProblem
from placeto.reports.rows import Baseline, seconds
from placeto.support.arrays import Floats

TOP_TYPES = 10


class TypeRow(TypedDict):
    """The ops of a type."""

    type: str
    ops: int
    seconds: float
    share: float | None


class GroupsSummary(TypedDict):
    """How even the groups are; see `groups_summary`."""

    num_groups: int
    largest_ops: int
    largest_time_share: float | None
    time_imbalance: float | None
    cut_bytes: int


class GraphSummary(TypedDict):
    """What is in a graph; see `graph_summary`."""

    graph: str
    kind: object
    source: object
    ops: int
    tensors: int
    control_dependencies: int
    edges: int
    tensor_bytes: int
    param_bytes: int
    flops: float
    op_seconds: dict[str, float]
    cannot_run: dict[str, int]
    critical_path: float | None
    type_kind: str | None
    types: list[TypeRow]


def graph_summary(graph: ComputationGraph, kind: str | None) -> GraphSummary:
    """Sizes, times and op types of a graph.

    Args:
        graph: the ops.
        kind: the device kind whose times rank the op types; None if the graph has none.

    Returns:
        JSON: counts, bytes, FLOP, seconds of one step on each device kind if nothing waits (ops
        that the kind cannot run left out, and counted in `cannot_run`), the `critical_path` in
        seconds on `kind` (null without one), and the `TOP_TYPES` op types that take longest.
    """
    columns = graph.op_seconds
    cannot_run = {name: int(np.isinf(column).sum()) for name, column in columns.items()}
    return {
        "graph": graph.name,
        "kind": graph.meta.get("kind"),
        "source": graph.meta.get("source"),
        "ops": graph.num_ops,
        "tensors": graph.num_tensors,
        "control_dependencies": int((graph.tensor_bytes == 0).sum()),
        "edges": graph.num_edges,
        "tensor_bytes": int(graph.tensor_bytes.sum()),
        "param_bytes": int(graph.param_bytes.sum()),
        "flops": float(graph.flops.sum()),
        "op_seconds": {name: float(_finite(column).sum()) for name, column in columns.items()},
        "cannot_run": {name: count for name, count in cannot_run.items() if count},
        "critical_path": None if kind is None else critical_path(_on_one(graph, kind, "none")),
        "type_kind": kind,
        "types": _types(graph, _column(graph, kind)),
    }


def groups_summary(graph: ComputationGraph, grouping: Grouping, kind: str | None) -> GroupsSummary:
    """How many groups a grouping makes, how even they are, what lies between them.

    Args:
        graph: the ops.
        grouping: see `PlacementProblem`.
        kind: the device kind whose times are compared; None if the graph has none.

    Returns:
        JSON: `num_groups`, `largest_ops`, `largest_time_share` (of the step's work, null if there
        is none), `time_imbalance` (the largest group's time over the mean), `cut_bytes` (tensors
        between groups, once for each group that consumes them).
    """
    problem = _on_one(graph, kind, grouping)
    time = problem.group_seconds[:, 0]
    total = float(time.sum())
    return {
        "num_groups": problem.num_groups,
        "largest_ops": int(np.bincount(problem.op_group).max()),
        "largest_time_share": float(time.max() / total) if total > 0 else None,
        "time_imbalance": float(time.max() / time.mean()) if total > 0 else None,
        "cut_bytes": int(problem.group_edges[2].sum()),
    }


def cluster_summary(problem: PlacementProblem, base: Baseline) -> dict[str, Any]:
    """What a cluster can make of a graph, as JSON: bounds, and the best single device."""
    single, device = base.single, base.single_device
    return {
        "cluster": problem.cluster.name,
        "critical_path": seconds(critical_path(problem)),
        "work_bound": seconds(work_bound(problem)),
        "lower_bound": seconds(base.lower_bound),
        "infeasibility": base.infeasibility,
        "single_device": problem.cluster.devices[device].name,
        "single_device_step_time": seconds(single.step_time),
        "single_device_gap": base.gap(single),
        "single_device_feasible": single.feasible,
        "single_device_peak_memory": int(single.peak_memory[device]),
        "single_device_memory_limit": int(problem.memory_limit[device]),
    }


def num_groups(graph: ComputationGraph) -> int:
    """How many groups a graph has by default."""
    return int(group_ops(graph, "auto").max()) + 1


def fastest_kind(graph: ComputationGraph, kinds: tuple[str, ...]) -> str | None:
    """Of `kinds`, that which runs most of the graph's ops, and of these the fastest."""
    columns = {kind: graph.op_seconds[kind] for kind in kinds if kind in graph.op_seconds}
    return min(
        columns,
        key=lambda kind: (int(np.isinf(columns[kind]).sum()), _finite(columns[kind]).sum()),
        default=None,
    )


def _on_one(graph: ComputationGraph, kind: str | None, grouping: Grouping) -> PlacementProblem:
    """The problem of one device of a kind, which takes no time for what it cannot run."""
    name = kind or "none"
    device = Cluster("any", (Device("any", name, 0),))
    return PlacementProblem(
        replace(graph, op_seconds={name: _column(graph, kind)}), device, grouping
    )


def _types(graph: ComputationGraph, column: Floats) -> list[TypeRow]:
    names, index, counts = np.unique(graph.op_types, return_inverse=True, return_counts=True)
    time = np.bincount(index, weights=column)
    total = float(time.sum())
    order = np.lexsort((np.arange(len(names)), -counts, -time))[:TOP_TYPES]
    return [
        {
            "type": str(names[row]),
            "ops": int(counts[row]),
            "seconds": float(time[row]),
            "share": float(time[row] / total) if total > 0 else None,
        }
        for row in order
    ]


def _column(graph: ComputationGraph, kind: str | None) -> Floats:
    """(num_ops,) seconds on a kind, 0 of what it cannot run; all 0 without one."""
    return np.zeros(graph.num_ops) if kind is None else _finite(graph.op_seconds[kind])


def _finite(column: Floats) -> Floats:
    return np.where(np.isfinite(column), column, 0.0)
