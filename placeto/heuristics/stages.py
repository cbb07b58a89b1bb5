"""Contiguous stages of layers, balanced by dynamic programming.

Layers are cut into one stretch a device so that the busiest device or link is as little busy as can
be: a pipeline of many microbatches takes that long for each (Narayanan et al. 2019,
arXiv:1806.03377; Tarnawski et al. 2020, arXiv:2006.16423).
"""

import functools
from collections.abc import Iterator
from itertools import combinations, product, repeat

import numpy as np

from placeto.heuristics.initial import all_on
from placeto.heuristics.layers import layer_positions
from placeto.problem import PlacementProblem
from placeto.simulation.alone import ends_seconds
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import NotApplicable
from placeto.support.jit import njit

_MOST_ORDERS = 24
_MOST_GROUPS = 4000
_NEAR = (1, 2, 3, 5, 8, 13, 21, 34)  # groups by which a cut is moved


def balanced_stages(problem: PlacementProblem) -> Iterator[Ints]:
    """Batches of (n, num_groups) placements: of each number of stages the best cuts, and near ones.

    The devices take stages in the orders in which they may stand, as far as these are few. What the
    groups of all microbatches take counts, and what all of their tensors do.

    Raises:
        NotApplicable: there are too many groups for a table of all pairs.
    """
    if problem.num_groups > _MOST_GROUPS:
        raise NotApplicable(
            f"stages needs at most {_MOST_GROUPS:,} groups, and there are {problem.num_groups:,}"
        )
    chains = [Chain(problem, position) for position in layer_positions(problem)]
    for count, chain in product(range(1, problem.num_devices + 1), chains):
        found = []
        for order in device_orders(problem, count):
            load, cuts = chain.cuts(order)
            found.append((load, order, cuts))
        _, order, cuts = min(found, key=lambda each: each[:2])
        yield chain.placed(np.concatenate([cuts[None], chain.near(cuts)]), order)


def device_orders(problem: PlacementProblem, count: int) -> list[tuple[int, ...]]:
    """Orders in which so many of the devices may take the stages: different ones, if few.

    Of orders whose devices and channels between these are alike there is one. Where that
    leaves more than `_MOST_ORDERS`, some that are far apart; the fastest devices in turn; and from
    each device those to which channels are widest.
    """
    device, channel = _likeness(problem)
    orders: list[tuple[int, ...]] = [()]
    for _ in range(count):
        longer: dict[tuple[object, ...], tuple[int, ...]] = {}
        for order, following in product(orders, range(problem.num_devices)):
            if following not in order:
                longer.setdefault(_kind((*order, following), device, channel), (*order, following))
        many = list(longer.values())
        spread = np.linspace(0, len(many) - 1, min(len(many), _MOST_ORDERS)).astype(int)
        orders = [many[number] for number in spread]
    known = {_kind(order, device, channel): order for order in orders}
    for order in (_fastest(problem), *map(_widest, repeat(problem), range(problem.num_devices))):
        known.setdefault(_kind(order[:count], device, channel), order[:count])
    return list(known.values())


def _fastest(problem: PlacementProblem) -> tuple[int, ...]:
    """The devices, the fastest first."""
    seconds = np.where(problem.allowed, problem.group_seconds, 0.0).sum(axis=0)
    return tuple(np.argsort(seconds, kind="stable").tolist())


def _widest(problem: PlacementProblem, first: int) -> tuple[int, ...]:
    """The devices, each after the one that its widest channel to one that is left comes from."""
    order = [first]
    while len(order) < problem.num_devices:
        width = problem.arrays.bandwidth[problem.arrays.channel_between[order[-1]]].copy()
        width[order] = -1.0
        order.append(int(width.argmax()))
    return tuple(order)


def _likeness(problem: PlacementProblem) -> tuple[list[object], list[list[object]]]:
    """What is equal of devices that are alike, and of the channels between two pairs of them."""
    cluster, between = problem.cluster, problem.arrays.channel_between.tolist()
    devices: list[object] = [
        (device.likeness, limit, allowed.tobytes())
        for device, limit, allowed in zip(
            cluster.devices, problem.memory_limit.tolist(), problem.allowed.T, strict=True
        )
    ]
    channels: list[object] = [
        (c.bandwidth, c.latency_seconds, c.overhead_seconds, c.send, c.receive)
        for c in cluster.channels
    ]
    return devices, [
        [channels[number] if number >= 0 else None for number in row] for row in between
    ]


def _kind(
    order: tuple[int, ...], device: list[object], channel: list[list[object]]
) -> tuple[object, ...]:
    """What is equal of orders that are alike."""
    steps = ((channel[one][other], channel[other][one]) for one, other in combinations(order, 2))
    return (*(device[each] for each in order), *steps)


class Chain:
    """Groups in a row, what they take on each device, and what crosses each cut of the row."""

    def __init__(self, problem: PlacementProblem, position: Ints) -> None:
        self.problem, self.position = problem, position
        seconds = np.where(problem.allowed, problem.group_seconds, 0.0)  # see `all_on` for the rest
        order = np.argsort(self.position)
        # (num_groups + 1, num_devices) of the groups before each cut.
        self.before: Floats = np.concatenate(
            [np.zeros((1, problem.num_devices)), np.cumsum(seconds[order], axis=0)]
        )
        graph = problem.graph
        consumers = self.position[problem.op_group[graph.edge_consumer]]
        producer = self.position[problem.op_group[graph.tensor_producer]]
        last, first = producer.copy(), producer.copy()
        np.maximum.at(last, graph.edge_tensor, consumers)
        np.minimum.at(first, graph.edge_tensor, consumers)
        # Of tensors that go on, and of those that come back: from which cut to which.
        self.spans = (producer, last), (first, producer)
        # Orders share how they begin. What is kept lives as long as the chain.
        self.boundary = functools.cache(self._boundary)
        self._ended = functools.cache(self._end)

    def crossing(self, seconds: Floats, way: int) -> Floats:
        """(num_groups + 1,) what all tensors that cross each cut take, on (0) or back (1).

        `seconds` is (num_tensors,) what each takes.
        """
        low, high = self.spans[way]
        total = np.zeros(self.problem.num_groups + 2)
        np.add.at(total, low + 1, seconds)
        np.add.at(total, high + 1, -seconds)
        return np.cumsum(total)[:-1]

    def _boundary(self, left: int, right: int) -> tuple[Floats, Floats, Floats]:
        """(num_groups + 1,) what a cut costs the device before it, the one behind, and the wire."""
        arrays, sizes = self.problem.arrays, self.problem.graph.tensor_bytes
        before, behind, wire = np.zeros((3, self.problem.num_groups + 1))
        for way, (source, target) in enumerate(((left, right), (right, left))):
            number = arrays.channel_between[source, target]
            ends = ends_seconds(arrays, np.full(len(sizes), number), sizes)
            sent, received = (self.crossing(each, way) for each in ends)
            before += received if way else sent
            behind += sent if way else received
            carried = sizes / arrays.bandwidth[number] + arrays.overhead[number]
            wire = np.maximum(wire, self.crossing(np.where(sizes > 0, carried, 0.0), way))
        return before, behind, wire

    def cuts(self, order: tuple[int, ...]) -> tuple[float, Ints]:
        """The busiest resource's seconds, and the (len(order) - 1,) cuts that make it least."""
        following = [*order[1:], None]
        came = [self._ended(order[: n + 1], after)[1] for n, after in enumerate(following)]
        cut, cuts = self.problem.num_groups, []
        for choice in reversed(came[1:]):
            cut = int(choice[cut])
            cuts.append(cut)
        return float(self._ended(order, None)[0][-1]), np.array(cuts[::-1], dtype=np.int64)

    def _end(self, order: tuple[int, ...], following: int | None) -> tuple[Floats, Ints]:
        """(num_groups + 1,) the least of what is busiest up to where the last of stages ends.

        And where that stage begins. Each device of the order has a stage; `following` has the next.
        """
        count, device = self.problem.num_groups + 1, order[-1]
        received, wire, sent = np.zeros((3, count))
        least = np.where(np.arange(count) == 0, 0.0, np.inf)
        if len(order) > 1:
            least, _ = self._ended(order[:-1], device)
            _, received, wire = self.boundary(order[-2], device)
        if following is not None:
            sent, _, _ = self.boundary(device, following)
        work = self.before[:, device]
        return _extended(np.maximum(least, wire), work + sent, received - work)

    def near(self, cuts: Ints) -> Ints:
        """(n, len(cuts)) the same cuts but for one, which is some groups earlier or later."""
        ends = [0, *cuts.tolist(), self.problem.num_groups]
        found: list[list[int]] = []
        for index, cut in enumerate(cuts.tolist()):
            moved = (cut + way * by for by in _NEAR for way in (-1, 1))
            found += [
                [*cuts[:index], other, *cuts[index + 1 :]]
                for other in moved
                if ends[index] < other < ends[index + 2]
            ]
        return np.array(found, dtype=np.int64).reshape(len(found), len(cuts))

    def placed(self, many: Ints, order: tuple[int, ...]) -> Ints:
        """(n, num_groups) devices of stages between (n, len(order) - 1) cuts."""
        stages = (np.searchsorted(cuts, self.position, side="right") for cuts in many)
        return np.stack([all_on(self.problem, np.array(order)[stage]) for stage in stages])


@njit(cache=True)
def _extended(before: Floats, to: Floats, since: Floats) -> tuple[Floats, Ints]:
    """By where a stage ends: what is busiest up to there at least, and where it then begins.

    All are (num_groups + 1,), seconds: of what is busiest up to the stage's begin, and the stage's
    own, the sum of a part by where it ends and one by where it begins.
    """
    least, begin = np.empty(len(to)), np.zeros(len(to), dtype=np.int64)
    for end in range(len(to)):
        least[end] = max(to[end] + since[0], before[0])
        for cut in range(1, end + 1):
            busiest = max(to[end] + since[cut], before[cut])
            if busiest < least[end]:
                least[end], begin[end] = busiest, cut
    return least, begin
