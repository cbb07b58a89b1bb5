"""Static mapping by Scotch, onto all devices or onto all but the CPUs."""

import numpy as np

from placeto.heuristics.costs import device_speeds, links, moved_where_allowed
from placeto.heuristics.partition import partition_graph
from placeto.heuristics.scotch_library import FREE, scotch_parts
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable

IMBALANCE = 0.01  # Scotch's own
SPEED_OF_FASTEST = 1000
SHORTEST_DISTANCE = 100
MAX_RATIO = 100  # of the longest distance to the shortest
MAX_SEED = 2**31 - 1


def mapped_everywhere(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(num_groups,) Scotch's static mapping onto all devices of the cluster, the CPUs among them.

    A baseline of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972, section 4.1); Scotch by
    Pellegrini & Roman (1996, "Scotch: a software package for static mapping by dual recursive
    bipartitioning of process and architecture graphs"). See `mapped`.

    Raises:
        NotApplicable: pyscotch is not installed.
    """
    return mapped(problem, np.arange(problem.num_devices), int(rng.integers(MAX_SEED)))


def mapped_without_cpus(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(num_groups,) the same as `mapped_everywhere` without the CPUs, as in ColocRL.

    Only groups that may be nowhere else are on a CPU. On a cluster without a CPU the two are the
    same.

    Raises:
        NotApplicable: pyscotch is not installed, or all devices are CPUs.
    """
    kinds = [device.kind for device in problem.cluster.devices]
    devices = np.array([number for number, kind in enumerate(kinds) if kind != "cpu"], dtype=int)
    if not len(devices):
        raise NotApplicable(
            f"cluster {problem.cluster.name!r} has no device but those of kind cpu; "
            "method mincut needs another"
        )
    return mapped(problem, devices, int(rng.integers(MAX_SEED)))


def mapped(problem: PlacementProblem, devices: Ints, seed: int) -> Ints:
    """Maps the groups onto some of the devices by Scotch.

    Vertices and edges are weighted as by `partition_graph`. The architecture is a complete graph
    of the devices (a `deco 2` of Scotch). A device's weight is its speed, of which its share of the
    work follows: 1000 for the fastest, at least 1. The distance of two devices is the seconds that
    the mean edge's bytes take between them, the mean of both directions: 100 for the shortest, and
    for all below a hundredth of the longest. Both are rounded to whole numbers. Groups that only
    one of the devices can take are fixed there; those that some can take and Scotch puts elsewhere
    move afterwards (see `moved_where_allowed`). Scotch knows no limits of memory.

    Args:
        problem: what is placed.
        devices: (n,) numbers of the devices, rising.
        seed: of Scotch's random numbers.

    Returns:
        (num_groups,) devices; groups that may be on none of those given are on others.
    """
    allowed = problem.allowed[:, devices]
    graph, groups = partition_graph(problem, devices)
    placed: Ints = problem.allowed.argmax(axis=1)
    if len(devices) == 1 or not len(groups):
        placed[groups] = devices[0]
        return placed
    only = allowed[groups].sum(axis=1) == 1
    parts = scotch_parts(
        graph,
        speeds=_speeds(problem, devices),
        distances=_distances(problem, devices),
        fixed=np.where(only, allowed[groups].argmax(axis=1), FREE),
        seed=seed,
        imbalance=IMBALANCE,
    )
    placed[groups] = devices[parts]
    return moved_where_allowed(problem, placed)


def _speeds(problem: PlacementProblem, devices: Ints) -> Ints:
    whole = np.rint(device_speeds(problem, devices) * SPEED_OF_FASTEST)
    speeds: Ints = np.maximum(whole, 1).astype(np.int64)
    return speeds


def _distances(problem: PlacementProblem, devices: Ints) -> Ints:
    """(n, n) whole numbers in proportion to the time of a transfer; 0 on the diagonal."""
    sizes = problem.group_edges[2]
    between = links(problem)
    seconds = between.startup + between.pace * (sizes.mean() if len(sizes) else 0.0)
    seconds = (seconds + seconds.T)[np.ix_(devices, devices)]
    apart = ~np.eye(len(devices), dtype=bool)
    unit = max(seconds[apart].min(), seconds.max() / MAX_RATIO) or 1.0
    distances = np.maximum(np.rint(seconds / unit * SHORTEST_DISTANCE), SHORTEST_DISTANCE)
    return np.where(apart, distances, 0).astype(np.int64)
