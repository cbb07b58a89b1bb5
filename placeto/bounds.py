"""Step times that no placement can beat."""

import numpy as np

from placeto.order import longest_paths
from placeto.problem import PlacementProblem


def critical_path(problem: PlacementProblem) -> float:
    """Seconds of the longest chain of ops, each on its fastest device and no transfer charged."""
    graph = problem.graph
    fastest = problem.op_seconds.min(axis=1)
    finish = longest_paths(graph.topological_order, *graph.op_edges, fastest)
    return float(finish.max())


def work_bound(problem: PlacementProblem) -> float:
    """Seconds that the devices need if they share out the ops and never wait.

    An op holds its device for its seconds and, if these are not 0, for the launch overhead; only
    the last overhead on each device may lie beyond the last finish. So, for weights of the
    devices that add up to 1, the weighted least holds of all ops, less the weighted overheads, are
    no more than the step time (the dual of the linear program that splits ops between devices).
    The better of equal weights and of weights by the devices' speed is taken.
    """
    overhead = np.array([d.launch_overhead_seconds for d in problem.cluster.devices])
    held = problem.op_seconds + np.where(problem.op_seconds > 0, overhead, 0.0)
    speed = 1 / np.maximum(held.sum(axis=0), np.finfo(float).tiny)
    speed = np.maximum(speed / max(speed.max(), np.finfo(float).tiny), 1e-9)
    return max(
        float(((held * weights).min(axis=1).sum() - overhead @ weights) / weights.sum())
        for weights in (np.ones_like(speed), speed)
    )


def lower_bound(problem: PlacementProblem) -> float:
    """Seconds that no placement's step time is below: critical path, or work over devices."""
    return max(critical_path(problem), work_bound(problem), 0.0)
