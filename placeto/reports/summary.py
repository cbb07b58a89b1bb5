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


class GroupsSummary(TypedDict):
    """How even the groups are; see `groups_summary`."""

    num_groups: int
    largest_ops: int
    largest_time_share: float | None
    time_imbalance: float | None
    cut_bytes: int


def graph_summary(graph: ComputationGraph, kind: str | None) -> dict[str, Any]:
    """Sizes, times and op types of a graph, whose times on `kind`, if it has any, rank the types.

    Returns:
        JSON: counts, bytes, FLOP, seconds of one step on each device kind if nothing waits (ops
        that the kind cannot run left out, and counted in `cannot_run`), the `critical_path` in
        seconds on `kind` (null without one), and the `TOP_TYPES` op types that take longest.
    """
    return {
        "graph": graph.name,
        "kind": graph.meta.get("kind"),
        "source": graph.meta.get("source"),
        "ops": graph.num_ops,
        "microbatches": graph.num_microbatches,
        "tensors": graph.num_tensors,
        "control_dependencies": int((graph.tensor_bytes == 0).sum()),
        "edges": graph.num_edges,
        "tensor_bytes": int(graph.tensor_bytes.sum()),
        "param_bytes": int(graph.param_bytes.sum()),
        "flops": float(graph.flops.sum()),
        "op_seconds": {name: work_seconds(graph, name) for name in graph.op_seconds},
        "cannot_run": cannot_run(graph),
        "critical_path": None if kind is None else path_on_kind(graph, kind),
        "type_kind": kind,
        "types": [
            {"type": name, "ops": ops, "seconds": time, "share": share}
            for name, ops, time, share in longest_types(graph, kind)
        ],
    }


def groups_summary(graph: ComputationGraph, grouping: Grouping, kind: str | None) -> GroupsSummary:
    """How many groups a grouping makes, how even they are on `kind`, what lies between them.

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


def cannot_run(graph: ComputationGraph) -> dict[str, int]:
    """How many ops the device kinds that cannot run all of them cannot run."""
    counts = {kind: int(np.isinf(column).sum()) for kind, column in graph.op_seconds.items()}
    return {kind: count for kind, count in counts.items() if count}


def work_seconds(graph: ComputationGraph, kind: str) -> float:
    """Seconds of all ops that a device kind can run."""
    return float(_column(graph, kind).sum())


def path_on_kind(graph: ComputationGraph, kind: str) -> float:
    """Seconds of the critical path on devices of a kind."""
    return critical_path(_on_one(graph, kind, "none"))


def fastest_kind(graph: ComputationGraph, kinds: tuple[str, ...]) -> str | None:
    """Of `kinds`, that which runs most of the graph's ops, and of these the fastest."""
    missing = cannot_run(graph)
    return min(
        (kind for kind in kinds if kind in graph.op_seconds),
        key=lambda kind: (missing.get(kind, 0), work_seconds(graph, kind)),
        default=None,
    )


def _on_one(graph: ComputationGraph, kind: str | None, grouping: Grouping) -> PlacementProblem:
    """The problem of one device of a kind, which takes no time for what it cannot run."""
    name = kind or "none"
    device = Cluster("any", (Device("any", name, 0),))
    return PlacementProblem(
        replace(graph, op_seconds={name: _column(graph, kind)}), device, grouping
    )


def longest_types(
    graph: ComputationGraph, kind: str | None
) -> list[tuple[str, int, float, float | None]]:
    """The `TOP_TYPES` op types that take longest on a kind: ops, seconds, share of all seconds.

    Without a kind those with most ops; the share is None where nothing takes any time.
    """
    names, index, counts = np.unique(graph.op_types, return_inverse=True, return_counts=True)
    time = np.bincount(index, weights=_column(graph, kind))
    total = float(time.sum())
    shares = (time / total).tolist() if total > 0 else [None] * len(time)
    rows = zip(names.tolist(), counts.tolist(), time.tolist(), shares, strict=True)
    return sorted(rows, key=lambda row: (-row[2], -row[1], row[0]))[:TOP_TYPES]


def _column(graph: ComputationGraph, kind: str | None) -> Floats:
    """(num_ops,) seconds on a kind, 0 of what it cannot run; all 0 without one."""
    column = np.zeros(graph.num_ops) if kind is None else graph.op_seconds[kind]
    return np.where(np.isfinite(column), column, 0.0)
