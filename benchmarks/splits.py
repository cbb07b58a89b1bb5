"""Placements on two devices of every kind that people and placers come up with."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.dags import levels

CUTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
WINDOWS = (4, 8, 16, 32)
LAYERS = (3, 4, 8, 16, 32, 64)
DRAWS = 2


@dataclass(frozen=True, eq=False)
class Split:
    """A placement with a unique name; its family is what kind of placement it is."""

    label: str
    family: str
    devices: Ints  # (num_groups,) 0 or 1


def splits(problem: PlacementProblem) -> Iterator[Split]:
    """Different placements of a problem on its first two devices; the same problem gives the same.

    All on either device; the first part of the step's order here, the rest there; the first layers
    with their gradients here, the rest there; parallel branches of a window of layers apart;
    every layer on a device drawn at random.
    """
    yield from different(_candidates(problem))


def different(splits: Iterable[Split]) -> Iterator[Split]:
    """Those whose placement is not that of one before."""
    seen = set()
    for split in splits:
        if (key := split.devices.tobytes()) not in seen:
            seen.add(key)
            yield split


def _candidates(problem: PlacementProblem) -> Iterator[Split]:
    for device in (0, 1):
        placement = np.full(problem.num_groups, device)
        yield Split(f"all on {device}", "single device", placement)
    orders = {"cut": problem.group_position, "layer cut": layer_of_group(problem)}
    for family, position in orders.items():
        share = _work_before(problem, position)
        for cut in CUTS:
            yield Split(f"{family} at {cut}", family, (share > cut).astype(np.int64))
    for windows in WINDOWS:
        yield Split(f"branches of {windows} windows", "branches", branches_apart(problem, windows))
    rng = np.random.default_rng(0)
    for layers, draw in product(LAYERS, range(DRAWS)):
        devices = rng.integers(0, 2, layers)
        devices[rng.integers(1, layers)] = 1 - devices[0]
        devices = devices[_windows(problem, layers)]
        yield Split(f"random {layers} layers, draw {draw}", "random layers", devices)


def layer_of_group(problem: PlacementProblem) -> Ints:
    """(num_groups,) how deep in the model a group is, the same for a layer and its gradient.

    The depth of an op is the least number of levels from the step's begin or from its end: a
    training step goes through the layers and back.
    """
    graph = problem.graph
    source, target = graph.op_edges
    depth = levels(graph.num_ops, source, target)
    height = levels(graph.num_ops, target, source)
    # Half of a group's work is before and half behind its depth; a group may have both passes.
    weight = problem.op_seconds[:, 0] + 1e-9
    total = np.bincount(problem.op_group, weights=weight)
    mean = np.bincount(problem.op_group, weights=weight * np.minimum(depth, height)) / total
    return np.argsort(np.argsort(mean, kind="stable"), kind="stable")


def branches_apart(problem: PlacementProblem, windows: int) -> Ints:
    """(num_groups,) within each of some windows of layers, unconnected parts on different devices.

    Parts of a window go, the largest first, to the device with less work in that window.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    window = _windows(problem, windows)
    source, target, _ = problem.group_edges
    within = window[source] == window[target]
    pairs = np.ones(within.sum()), (source[within], target[within])
    edges = coo_array(pairs, shape=(problem.num_groups, problem.num_groups))
    parts = connected_components(edges, directed=False)[1]  # (num_groups,)
    seconds = problem.group_seconds[:, 0]
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    for number in range(windows):
        inside = np.flatnonzero(window == number)
        work = np.zeros(2)
        members = np.unique(parts[inside])
        totals = {part: seconds[inside][parts[inside] == part].sum() for part in members}
        for part in sorted(members, key=lambda part: -totals[part]):
            device = int(work[1] < work[0])
            devices[inside[parts[inside] == part]] = device
            work[device] += totals[part]
    return devices


def _windows(problem: PlacementProblem, windows: int) -> Ints:
    """(num_groups,) in which of some windows of layers, of equal work, each group is."""
    share = _work_before(problem, layer_of_group(problem))
    return np.minimum((share * windows).astype(np.int64), windows - 1)


def _work_before(problem: PlacementProblem, position: Ints) -> np.ndarray:
    """(num_groups,) share of the step's work up to the middle of each group, in that order."""
    seconds = problem.group_seconds[:, 0]
    order = np.argsort(position, kind="stable")
    share = np.empty(len(order))
    share[order] = (np.cumsum(seconds[order]) - seconds[order] / 2) / seconds.sum()
    return share
