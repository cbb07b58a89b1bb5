"""Methods on many problems: rows and their means."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from placeto.placement import Placement
from placeto.reports.rows import ratio, seconds


class EvaluationRow(TypedDict):
    """What a method found on a problem."""

    graph: str
    cluster: str
    num_groups: int
    method: str
    step_time: float | None
    single_device_step_time: float | None
    ratio: float | None
    feasible: bool
    wall_seconds: float
    evaluations: int
    seed: int


class MeanRow(TypedDict):
    """How a method does on all problems."""

    method: str
    ratio: float | None
    wall_seconds: float
    problems: int
    infeasible: int


def evaluation_row(found: Placement, single: Placement) -> EvaluationRow:
    """What a method found on a problem, as JSON.

    Args:
        found: by it.
        single: the best single device's placement.

    Returns:
        Keys as in `placement_row`: seconds, null where a number is not finite.
    """
    problem = found.problem
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "num_groups": problem.num_groups,
        "method": found.method,
        "step_time": seconds(found.step_time),
        "single_device_step_time": seconds(single.step_time),
        "ratio": ratio(found.step_time, single.step_time),
        "feasible": found.feasible,
        "wall_seconds": found.wall_seconds,
        "evaluations": found.evaluations,
        "seed": found.seed,
    }


def geometric_means(rows: Sequence[EvaluationRow]) -> list[MeanRow]:
    """A row a method: how it does on all problems.

    Returns:
        `method`, `ratio` (the geometric mean over the problems that it fits; null where it fits
        none), `wall_seconds` (the mean over all problems), `problems` (how many it was
        run on) and `infeasible` (on how many of these it found nothing that fits in memory).
    """
    means: list[MeanRow] = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        ratios = [row["ratio"] for row in own if row["feasible"] and row["ratio"] is not None]
        means.append(
            {
                "method": method,
                "ratio": float(np.exp(np.log(ratios).mean())) if ratios else None,
                "wall_seconds": float(np.mean([row["wall_seconds"] for row in own])),
                "problems": len(own),
                "infeasible": sum(not row["feasible"] for row in own),
            }
        )
    return means
