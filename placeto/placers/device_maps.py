"""Placements that become device maps: what does not fit on devices that compute is stored."""

import time
from collections.abc import Callable, Mapping

from placeto.bounds import infeasibility
from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.placement import Placement
from placeto.placement.module_devices import check_device_map
from placeto.placement.offload import main_device, main_memory, stores, with_stores
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
    for first, in half of the time, unless it is clear that there is none. Then as little of the
    main device's memory is kept free as is found to do.

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
    given = graph, cluster
    end = time.monotonic() + budget_seconds
    problem = problem_of(*with_stores(*given, twice=None))
    room = cluster.devices[main_device(cluster)].memory_bytes
    if infeasibility(problem) is None:
        found = place(problem, method, budget_seconds / 2, seed, progress, settings)
        if found.feasible or found.interrupted:
            return found
    for tries, twice in zip((3, 2, 1), (0.0, 0.5, 1.0), strict=True):
        problem = problem_of(*with_stores(*given, twice=twice))
        seconds = max((end - time.monotonic()) / tries, budget_seconds / 8)
        found = place(problem, method, seconds, seed, progress, settings)
        fits = main_memory(problem, found.devices) <= room
        if fits or not found.feasible or found.interrupted:
            break
    return found
