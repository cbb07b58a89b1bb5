"""Placements on two devices of every kind that people and placers come up with."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from placeto.heuristics.layers import layer_positions
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints

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


def splits(problem: PlacementProblem) -> list[Split]:
    """Different placements of a problem on its first two devices; the same problem gives the same.

    Single devices; cuts of the step's order and of its layers, with their gradients; parallel
    branches apart; layers on devices drawn at random.
    """
    ends = [np.full(problem.num_groups, device) for device in (0, 1)]
    found = [Split(f"all on {device}", "single device", each) for device, each in enumerate(ends)]
    orders = {"cut": problem.group_position, "layer cut": layer_positions(problem)[0]}
    for (family, position), cut in product(orders.items(), CUTS):
        found.append(Split(f"{family} at {cut}", family, _cut(problem, position, cut)))
    for windows in WINDOWS:
        apart = branches_apart(problem, windows)
        found.append(Split(f"branches of {windows} windows", "branches", apart))
    rng = np.random.default_rng(0)
    for layers, draw in product(LAYERS, range(DRAWS)):
        devices = rng.integers(0, 2, layers)
        devices[rng.integers(1, layers)] = 1 - devices[0]
        devices = devices[_windows(problem, layers)]
        found.append(Split(f"random {layers} layers, draw {draw}", "random layers", devices))
    return different(found)


def layer_cut(problem: PlacementProblem, share: float) -> Ints:
    """(num_groups,) the first layers, of so much of the work, on one device, and the others."""
    return _cut(problem, layer_positions(problem)[0], share)


def even_cut(problem: PlacementProblem) -> Ints:
    """(num_groups,) as many stretches of layers as devices, of equal work on the first device."""
    return _windows(problem, problem.num_devices)


def different(splits: Iterable[Split]) -> list[Split]:
    """Those whose placement is not that of one before."""
    found: dict[bytes, Split] = {}
    for split in splits:
        found.setdefault(split.devices.tobytes(), split)
    return list(found.values())


def branches_apart(problem: PlacementProblem, windows: int) -> Ints:
    """(num_groups,) unconnected parts of each window of layers apart, the largest first."""
    window = _windows(problem, windows)
    source, target, _ = problem.group_edges
    within = window[source] == window[target]
    pairs = np.ones(within.sum()), (source[within], target[within])
    edges = coo_array(pairs, shape=(problem.num_groups, problem.num_groups))
    parts = connected_components(edges, directed=False)[1]  # (num_groups,)
    totals = np.bincount(parts, problem.group_seconds[:, 0])
    work = np.zeros((windows, 2))
    device_of = np.zeros(len(totals), dtype=np.int64)
    window_of = dict(zip(parts.tolist(), window.tolist(), strict=True))
    for part in np.argsort(-totals, kind="stable").tolist():
        mine = work[window_of[part]]
        device_of[part] = mine[1] < mine[0]
        mine[device_of[part]] += totals[part]
    return device_of[parts]


def _cut(problem: PlacementProblem, position: Ints, share: float) -> Ints:
    return (_work_before(problem, position) > share).astype(np.int64)


def _windows(problem: PlacementProblem, windows: int) -> Ints:
    """(num_groups,) in which of some windows of layers, of equal work, each group is."""
    share = _work_before(problem, layer_positions(problem)[0])
    return np.minimum((share * windows).astype(np.int64), windows - 1)


def _work_before(problem: PlacementProblem, position: Ints) -> np.ndarray:
    """(num_groups,) share of the step's work up to the middle of each group, in that order."""
    seconds = problem.group_seconds[:, 0]
    order = np.argsort(position, kind="stable")
    share = np.empty(len(order))
    share[order] = (np.cumsum(seconds[order]) - seconds[order] / 2) / seconds.sum()
    return share
