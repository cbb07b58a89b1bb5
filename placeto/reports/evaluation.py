"""Methods on many problems: rows and their means."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeto.placement import Placement
from placeto.reports.rows import Row, ratio, seconds
from placeto.search.incumbent import Incumbent


def evaluation_row(method: str, found: Placement | Incumbent, single: Placement, seed: int) -> Row:
    """What a method found on a problem, as JSON.

    Args:
        method: what it is called.
        found: by it.
        single: the best single device's placement.
        seed: where its random numbers started.

    Returns:
        Keys as in `placement_row`: seconds, null where a number is not finite.
    """
    problem = found.problem
    wall_seconds = found.wall_seconds if isinstance(found, Placement) else found.seconds
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "num_groups": problem.num_groups,
        "method": method,
        "step_time": seconds(found.step_time),
        "single_device_step_time": seconds(single.step_time),
        "ratio": ratio(found.step_time, single.step_time),
        "feasible": found.feasible,
        "wall_seconds": wall_seconds,
        "evaluations": found.evaluations,
        "seed": seed,
    }


def geometric_means(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A row a method: how it does on all problems.

    Returns:
        `method`, `ratio` (the geometric mean over the problems that it fits; null where it fits
        none), `wall_seconds` (the mean over all problems), `problems` (how many it was
        run on) and `infeasible` (on how many of these it found nothing that fits in memory).
    """
    means = []
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
