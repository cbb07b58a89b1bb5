"""The best placement of all, with a proof: branch and bound, each leaf simulated."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from placeto.heuristics.costs import fastest_seconds
from placeto.heuristics.initial import single_devices
from placeto.placers.exact.loads import load_bounds, load_relaxation_of
from placeto.placers.exact.relaxation import UNPLACED, bounds, relaxation_of
from placeto.problem import PlacementProblem
from placeto.search.incumbent import Incumbent
from placeto.search.repair import offer_starts
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import NotApplicable
from placeto.support.units import format_seconds

# Sums of the same seconds differ with the order of their terms: what is proven, and what is not
# worth looking at, is less than the best by this share of it.
ROUNDING = 1e-9
OPS_AT_ONCE = 2_000_000  # of the partial placements that are bounded together
# Of all placements, those that differ by interchangeable devices as one, times ops: minutes of
# simulation, if nothing could be ruled out.
MAX_SIMULATED_OPS = 1e10
# Of so few ops, times pairs of devices, placements of up to so many groups are so quickly bounded
# that a proof may end, however many there are.
MAX_OPS_ON_PAIRS = 5_000
MAX_GROUPS = 40
# Seconds, of the longest op, under which an op or a transfer may be over in the instant it starts.
INSTANT = 1e-12


Bounder = Callable[[Ints], tuple[Floats, Ints]]
"""Of (batch, num_groups) partial placements, (batch,) seconds and bytes, see `bounds`."""


class _Nodes(NamedTuple):
    """Partial placements in which the same groups are placed, and their bounds."""

    placed: int
    devices: Ints  # (n, num_groups)
    seconds: Floats  # (n,)
    excess: Ints  # (n,) bytes

    def some(self, which: Ints) -> "_Nodes":
        return _Nodes(self.placed, self.devices[which], self.seconds[which], self.excess[which])


def place_exact(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The best of all placements of a small problem, and a proven bound.

    It is for problems whose placements are few enough to be simulated, or of up to 40 groups of
    few ops; see `branch_and_bound`.

    Raises:
        NotApplicable: the problem is too large.
    """
    _check_size(incumbent.problem)
    offer_starts(incumbent, rng)
    incumbent.part = ""
    branch_and_bound(incumbent)


def _check_size(problem: PlacementProblem) -> None:
    ops, groups, devices = problem.graph.num_ops, problem.num_groups, problem.num_devices
    # Logarithms of how many placements can be simulated, and of how many there are, about.
    simulated = math.log(MAX_SIMULATED_OPS / ops) + log_symmetric_copies(problem)
    if float(np.log(problem.allowed.sum(axis=1)).sum()) <= simulated:
        return
    if groups <= MAX_GROUPS and ops * devices**2 <= MAX_OPS_ON_PAIRS:
        return
    most = simulated / math.log(devices)
    raise NotApplicable(
        f"exact: {groups} groups of {ops:,} ops on {devices} devices are too many to prove "
        f"anything of; it can do {MAX_GROUPS} groups of {MAX_OPS_ON_PAIRS // devices**2} ops in "
        f"all, or with so many ops {int(most)} groups (--grouping {int(most)})"
    )


def branch_and_bound(incumbent: Incumbent, until: float = math.inf) -> None:
    """Looks at every placement, or at a bound that rules it out; proves what that shows.

    Groups are placed one by one, those with most work first, each on every device that it may be
    on; of interchangeable devices with nothing on them, only on the first. A partial placement is
    dropped where no completion ranks above the incumbent: its bound on the step time, or on bytes
    over the memory limits, is too high. Those with the least bounds are completed first, depth
    first (Land & Doig 1960). Complete placements are simulated.

    When the budget ends, at `until`, in seconds by the incumbent's clock, or on Ctrl-C, the least
    bound of what was left is what is proven.
    """
    problem = incumbent.problem
    if (problem.alone < 1).any():  # no bound holds for single devices
        incumbent.offer_many(single_devices(problem))
    bound = _bounder(problem)
    order = np.argsort(-fastest_seconds(problem), kind="stable")
    classes = interchangeable_devices(problem)
    at_once = int(np.clip(OPS_AT_ONCE // problem.graph.num_ops, 16, 4096))
    root = np.full((1, problem.num_groups), UNPLACED)
    open_nodes = [_Nodes(0, root, *bound(root))]
    try:
        while open_nodes and not closed(incumbent):
            if incumbent.seconds >= min(until, incumbent.budget_seconds):
                break
            nodes = _kept(incumbent, open_nodes[-1])
            if nodes.placed < problem.num_groups:
                children = _children(problem, bound, classes, int(order[nodes.placed]), nodes)
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


def _bounder(problem: PlacementProblem) -> Bounder:
    if problem.objective == "throughput":
        return partial(load_bounds, *load_relaxation_of(problem))
    return partial(bounds, relaxation_of(problem))


def log_symmetric_copies(problem: PlacementProblem) -> float:
    """The logarithm of in how many ways interchangeable devices can be renamed."""
    _, sizes = np.unique(interchangeable_devices(problem), return_counts=True)
    return sum(math.lgamma(size + 1) for size in sizes.tolist())


def interchangeable_devices(problem: PlacementProblem) -> Ints:
    """Which devices are interchangeable: swapping any two of a class changes no step time.

    Two devices are when they run every op in the same time, hold as much, may have the same
    groups, and the channels are the same after the swap. Swaps that share a device make all
    permutations of their devices, so that classes are complete.

    The simulator takes the devices one by one only where ops of no duration are concerned. What
    these send can overtake within an instant, on a channel with several sources or by a transfer
    that takes no time; where that may happen, each device is a class of its own. So it is where
    channels have paths or cost their ends something: what two devices send at one instant then
    comes to a link in the order of the devices. For throughput no order counts.

    Returns:
        (num_devices,) the lowest-numbered device of each one's class.
    """
    classes = np.arange(problem.num_devices)
    p = problem.arrays
    ordered = problem.objective == "step-time" and (len(p.costs) > 0 or _numbers_matter(problem))
    if len(p.path) or ordered:
        return classes
    for device in range(problem.num_devices):
        for lower in range(device):
            if classes[lower] == lower and _interchangeable(problem, lower, device):
                classes[device] = lower
                break
    return classes


def _interchangeable(problem: PlacementProblem, one: int, other: int) -> bool:
    p = problem.arrays
    of_device = (problem.op_seconds.T, problem.allowed.T, p.launch_overhead, problem.memory_limit,
                 problem.alone)  # fmt: skip
    if not all(np.array_equal(values[one], values[other]) for values in of_device):
        return False
    swapped = np.arange(problem.num_devices)
    swapped[[one, other]] = other, one
    apart = ~np.eye(problem.num_devices, dtype=bool)
    before = p.channel_between[apart]
    after = p.channel_between[np.ix_(swapped, swapped)][apart]
    # Each channel must become one channel; no two the same one, since the swap undoes itself.
    pairs = {*zip(before.tolist(), after.tolist(), strict=True)}
    if len(pairs) != len(set(before.tolist())):
        return False
    channels = problem.cluster.channels
    ends = [(channel.send, channel.receive) for channel in channels]
    return all(ends[one] == ends[other] for one, other in pairs) and all(
        np.array_equal(values[before], values[after])
        for values in (p.bandwidth, p.latency, p.overhead, p.multicast)
    )


def _numbers_matter(problem: PlacementProblem) -> bool:
    """Whether the lower-numbered of two devices can be first, at one instant, where it counts."""
    p, graph = problem.arrays, problem.graph
    seconds = np.where(np.isfinite(problem.op_seconds), problem.op_seconds, 0.0)
    instant = INSTANT * float(seconds.max())
    brief = np.flatnonzero((problem.op_seconds <= instant).any(axis=1))
    producer = graph.tensor_producer[graph.edge_tensor]
    leaves = problem.op_group[producer] != problem.op_group[graph.edge_consumer]
    sent = np.unique(graph.edge_tensor[leaves & np.isin(producer, brief)])
    if not len(sent) or not len(p.bandwidth):
        return False
    sources = [
        (p.channel_between == channel).any(axis=1).sum() for channel in range(len(p.bandwidth))
    ]
    fastest = graph.tensor_bytes[sent].min() / p.bandwidth + p.latency
    return bool(max(sources) > 1 or fastest.min() <= instant)


def _children(
    problem: PlacementProblem, bound: Bounder, classes: Ints, group: int, nodes: _Nodes
) -> _Nodes:
    """The nodes with one more group placed, on each device that it may be on."""
    some, every = [], range(problem.num_devices)
    used = np.stack([(nodes.devices == device).any(axis=1) for device in every], axis=1)
    for device in np.flatnonzero(problem.allowed[group]).tolist():
        alike = np.flatnonzero((classes == classes[device])[:device])
        chosen = nodes.devices[used[:, alike].all(axis=1)]
        chosen[:, group] = device
        some.append(chosen)
    devices = np.concatenate(some)
    return _Nodes(nodes.placed + 1, devices, *bound(devices))


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


def closed(incumbent: Incumbent) -> bool:
    """Whether what was proven before says that the incumbent is the best."""
    return incumbent.feasible and incumbent.lower_bound >= incumbent.step_time * (1 - ROUNDING)


def _proven(incumbent: Incumbent, open_nodes: list[_Nodes]) -> float:
    """Seconds that no feasible placement is below: neither the incumbent nor any left open."""
    least = min((float(nodes.seconds.min()) for nodes in open_nodes), default=np.inf)
    return min(least, incumbent.step_time if incumbent.feasible else np.inf) * (1 - ROUNDING)
