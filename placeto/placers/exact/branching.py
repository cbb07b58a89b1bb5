"""Branch and bound over placements, each leaf simulated."""

import math
from typing import NamedTuple

import numpy as np

from placeto.heuristics.costs import fastest_seconds
from placeto.placers.exact.relaxation import UNPLACED, Relaxation, bounds, relaxation_of
from placeto.placers.exact.symmetry import interchangeable_devices
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.support.arrays import Floats, Ints
from placeto.support.units import format_seconds

# Sums of the same seconds differ with the order of their terms: what is proven, and what is not
# worth looking at, is less than the best by this share of it.
ROUNDING = 1e-9
OPS_AT_ONCE = 2_000_000  # of the partial placements that are bounded together


class _Nodes(NamedTuple):
    """Partial placements in which the same groups are placed, and their bounds."""

    placed: int
    devices: Ints  # (n, num_groups)
    seconds: Floats  # (n,)
    excess: Ints  # (n,) bytes

    def some(self, which: Ints) -> "_Nodes":
        return _Nodes(self.placed, self.devices[which], self.seconds[which], self.excess[which])


def branch_and_bound(incumbent: Incumbent) -> None:
    """Looks at every placement, or at a bound that rules it out; proves what that shows.

    Groups are placed one by one, those with most work first, each on every device that it may be
    on; of interchangeable devices with nothing on them, only on the first. A partial placement is
    dropped where no completion ranks above the incumbent: its bound on the step time, or on bytes
    over the memory limits, is too high. Those with the least bounds are completed first, depth
    first (Land & Doig 1960). Complete placements are simulated.

    When the budget ends, or on Ctrl-C, the least bound of what was left is what is proven.
    """
    problem = incumbent.problem
    relaxation = relaxation_of(problem)
    order = np.argsort(-fastest_seconds(problem), kind="stable")
    classes = interchangeable_devices(problem)
    at_once = int(np.clip(OPS_AT_ONCE // problem.graph.num_ops, 16, 4096))
    root = np.full((1, problem.num_groups), UNPLACED)
    open_nodes = [_Nodes(0, root, *bounds(relaxation, root))]
    try:
        while open_nodes and not incumbent.expired and not _closed(incumbent):
            nodes = _kept(incumbent, open_nodes[-1])
            if nodes.placed < problem.num_groups:
                children = _children(problem, relaxation, classes, int(order[nodes.placed]), nodes)
                open_nodes[-1:] = _parts(_kept(incumbent, children), at_once)
                continue
            if len(nodes.devices):
                incumbent.offer_many(nodes.devices)
                incumbent.progress(
                    f"branch and bound: {incumbent.evaluations:,} placements simulated, "
                    f"best {format_seconds(incumbent.step_time)}, "
                    f"none is below {format_seconds(_proven(incumbent, open_nodes))}"
                )
            open_nodes.pop()
    finally:
        incumbent.prove(_proven(incumbent, open_nodes))


def log_symmetric_copies(problem: PlacementProblem) -> float:
    """The logarithm of in how many ways interchangeable devices can be renamed."""
    _, sizes = np.unique(interchangeable_devices(problem), return_counts=True)
    return sum(math.lgamma(size + 1) for size in sizes.tolist())


def _children(
    problem: PlacementProblem, relaxation: Relaxation, classes: Ints, group: int, nodes: _Nodes
) -> _Nodes:
    """The nodes with one more group placed, on each device that it may be on."""
    some = []
    used = (nodes.devices[:, :, None] == np.arange(problem.num_devices)).any(axis=1)
    for device in np.flatnonzero(problem.allowed[group]).tolist():
        alike = np.flatnonzero((classes == classes[device])[:device])
        chosen = nodes.devices[used[:, alike].all(axis=1)]
        chosen[:, group] = device
        some.append(chosen)
    devices = np.concatenate(some)
    return _Nodes(nodes.placed + 1, devices, *bounds(relaxation, devices))


def _kept(incumbent: Incumbent, nodes: _Nodes) -> _Nodes:
    """The nodes of which a completion could rank above the incumbent."""
    over = incumbent.excess
    faster = nodes.seconds < incumbent.step_time * (1 - ROUNDING)
    return nodes.some(np.flatnonzero((nodes.excess < over) | ((nodes.excess == over) & faster)))


def _parts(nodes: _Nodes, at_once: int) -> list[_Nodes]:
    """The nodes in parts of `at_once`; in the last part, those with the least bounds."""
    order = np.lexsort((nodes.seconds, nodes.excess))
    starts = range(0, len(order), at_once)
    return [nodes.some(order[start : start + at_once]) for start in reversed(starts)]


def _closed(incumbent: Incumbent) -> bool:
    """Whether what was proven before says that the incumbent is the best."""
    return incumbent.feasible and incumbent.lower_bound >= incumbent.step_time * (1 - ROUNDING)


def _proven(incumbent: Incumbent, open_nodes: list[_Nodes]) -> float:
    """Seconds that no feasible placement is below: neither the incumbent nor any left open."""
    least = min((float(nodes.seconds.min()) for nodes in open_nodes), default=np.inf)
    return min(least, incumbent.step_time if incumbent.feasible else np.inf) * (1 - ROUNDING)
