"""Step times that no placement can beat."""

import numpy as np

from placeto.problem import PlacementProblem


def critical_path(problem: PlacementProblem) -> float:
    """Seconds of the longest chain of ops, each on its fastest device and no transfer charged."""
    graph = problem.graph
    fastest = problem.op_seconds.min(axis=1)
    finish = np.zeros(graph.num_ops)
    sources, targets = graph.op_edges
    order = np.argsort(targets, kind="stable")
    begin = np.searchsorted(targets[order], np.arange(graph.num_ops + 1))
    by_target = sources[order]
    for op in graph.topological_order.tolist():
        inputs = by_target[begin[op] : begin[op + 1]]
        ready = finish[inputs].max() if len(inputs) else 0.0
        finish[op] = ready + fastest[op]
    return float(finish.max())


def work_bound(problem: PlacementProblem) -> float:
    """Seconds that the devices need if they share the ops evenly and never wait.

    Every op holds some device for at least its least time and launch overhead over the devices;
    only the last overhead on each device may lie beyond the last finish.
    """
    overhead = np.array([d.launch_overhead_seconds for d in problem.cluster.devices])
    held = problem.op_seconds + np.where(problem.op_seconds > 0, overhead, 0.0)
    return float((held.min(axis=1).sum() - overhead.sum()) / problem.num_devices)


def lower_bound(problem: PlacementProblem) -> float:
    """Seconds that no placement's step time is below: critical path, or work over devices."""
    return max(critical_path(problem), work_bound(problem), 0.0)
