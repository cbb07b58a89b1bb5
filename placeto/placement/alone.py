"""Devices that compute while no other does."""

from collections.abc import Mapping

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats


def alone_factors(problem: PlacementProblem) -> Floats:
    """(num_devices,) by what each device's op times are to be multiplied while no other computes.

    `placeto calibrate --torch` measures processes of a CPU while all of them compute, as they share
    its memory, and says in the graph's meta how much faster one alone is; of other kinds it is 1.
    """
    costs = problem.graph.meta.get("costs")
    kinds = costs.get("kinds") if isinstance(costs, Mapping) else None
    known = kinds if isinstance(kinds, Mapping) else {}

    def factor(kind: str) -> float:
        of_kind = known.get(kind)
        found = of_kind.get("alone", 1.0) if isinstance(of_kind, Mapping) else 1.0
        return float(found) if isinstance(found, int | float) and 0 < found < np.inf else 1.0

    return np.array([factor(device.kind) for device in problem.cluster.devices])
