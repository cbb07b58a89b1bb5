"""Placements that become device maps: what does not fit on devices that compute is stored."""

import time
from collections.abc import Callable, Mapping

from placeto.bounds import infeasibility
from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.placement import Placement
from placeto.placement.module_devices import check_device_map
from placeto.placement.offload import stores, with_stores
from placeto.placers.registry import place
from placeto.problem import PlacementProblem
from placeto.support.progress import Progress, silent


def place_modules(
    graph: ComputationGraph,
    cluster: Cluster,
    problem_of: Callable[[ComputationGraph, Cluster], PlacementProblem] = PlacementProblem,
    method: str = "auto",
    budget_seconds: float = 30.0,
    seed: int = 0,
    progress: Progress = silent,
    settings: Mapping[str, object] | None = None,
) -> Placement:
    """Finds a placement for a device map, see `placeto.device_map`.

    The CPU beside a GPU, and the disk, hold weights and do not compute, as `dispatch_model` has it.
    Weights are brought from there only if they do not fit elsewhere: a placement without is looked
    for first, in half of the time, unless it is clear that there is none.

    Args:
        graph: of a PyTorch module.
        cluster: devices that PyTorch has names for.
        problem_of: makes the problem, with its grouping, of a graph and a cluster.
        method: see `placeto.place`, as for all that follow.
        budget_seconds: of all searches together.
        seed: where random numbers start.
        progress: told of what is going on.
        settings: of the placer.

    Raises:
        PlacetoError: the graph is of no PyTorch module, a device has no name, or two have the same;
            see `placeto.place`, too.
    """
    check_device_map(graph, cluster)
    if not stores(cluster):
        problem = problem_of(graph, cluster)
        return place(problem, method, budget_seconds, seed, progress, settings)
    begin = time.monotonic()
    problem = problem_of(*with_stores(graph, cluster, used=False))
    if infeasibility(problem) is None:
        found = place(problem, method, budget_seconds / 2, seed, progress, settings)
        if found.feasible or found.interrupted:
            return found
    left = max(budget_seconds - (time.monotonic() - begin), budget_seconds / 2)
    problem = problem_of(*with_stores(graph, cluster, used=True))
    return place(problem, method, left, seed, progress, settings)
