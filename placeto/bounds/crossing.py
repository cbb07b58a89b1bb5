"""What crosses: devices that share out the work must send each other tensors, over narrow links."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from placeto.bounds.relaxed import device_classes
from placeto.bounds.work import best_prices, held_seconds, priced
from placeto.cluster import Cluster
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import compressed, joined
from placeto.support.heaps import pop, push
from placeto.support.jit import njit

SHARE = 0.9  # of all work, whose groups send and receive flow: the heaviest
THIN = 0.02  # of what a side's links carry: thinner tensors would be full at once, and have no flow
PHASES = 10  # in which all of the flow is sent, each by what was sent before
BATCHES = 10  # of groups in a phase, after each of which paths are lengthened
SHARPNESS = 10.0  # how much longer full tensors are than empty ones, as an exponent
MOST_VISITS = 30_000_000  # ends of tensors looked at; what about four seconds allow
MARGIN = 1e-9  # relative, for rounding in sums
HALVINGS = 40  # of what is between a bound and no bound


class Sides(NamedTuple):
    """Devices taken together, what they can do, and what carries between each side and others."""

    speed: Floats  # (num_sides,) share of all work that a side does in a second
    beyond: Floats  # (num_sides,) share of it that may lie beyond the step's end
    bandwidth: Floats  # (num_sides,) bytes/s of all that leads out of it or into it


class Tensors(NamedTuple):
    """Which groups make and read what, tensors of the same groups taken as one.

    Both ways about, as compressed rows.
    """

    size: Floats  # (num_tensors,) bytes, above 0
    end_start: Ints  # (num_tensors + 1,)
    ends: Ints  # (num_ends,) groups of each tensor, two or more
    group_start: Ints  # (num_groups + 1,)
    of_group: Ints  # (num_ends,) tensors of each group


def crossing_bound(problem: PlacementProblem, known: float) -> float:
    """Seconds that the devices need if what they share out must cross between hosts.

    Let devices be parted into sides, each of which is joined to all others by links of C_h bytes a
    second in all. A tensor that is made on one side and read on another is carried by one of these
    links at least, so in a step of T seconds no more than T C_h bytes of tensors are cut by side h.

    A flow proves that cuts are wide. Send K w_u w_v bytes between any two groups u and v, along
    paths of groups of which each makes or reads a tensor that the next one does, so that no tensor
    carries more than its own bytes. Let side h have the part x_h of all w, which add up to 1. What
    flows between h and the others must flow through tensors that h cuts:

        K x_h (1 - x_h) <= bytes of tensors that h cuts <= T C_h.

    So x_h is small, or nearly 1. By prices of the devices' time (see `best_prices`), as shares of
    all work, side h can do X_h(T) of it. With w at most the work, a share s of it in all,
    s x_h <= X_h(T) too. If the most that each x_h may be add up to less than 1 for some T, no step
    is as short as that; and the most that they may be only grow with T.

    Any paths prove a bound. Those here are the shortest by lengths that grow with what a tensor
    carries already, as in approximations of the largest concurrent flow (Leighton and Rao 1999,
    J. ACM 46; Garg and Koenemann 2007, SIAM J. Comput. 37). Where T C_h is so large that no cut can
    be too wide, or there are too many groups, nothing is looked for.

    Args:
        problem: whose placements on several devices are bounded.
        known: a bound in seconds; what does not raise it is not looked for.
    """
    classes = device_classes(problem)
    held = held_seconds(problem, classes)
    prices = [time / classes.size for time, _ in best_prices(problem, classes, classes.overhead)]
    price = max(prices, key=lambda each: float(priced(held, each).min(axis=1).sum()))
    work = priced(held, price).min(axis=1)
    whole = float(work.sum())
    if not whole > 0 or not known > 0:
        return 0.0
    speed = price[classes.of_device] / whole
    parted = sides_of(problem.cluster, speed, speed * classes.overhead[classes.of_device])
    narrow = min((float(sides.bandwidth.min()) for sides in parted), default=np.inf) * known
    tensors = tensors_between(problem, THIN * narrow)
    ends = heaviest_part(tensors, work)
    by_work = np.argsort(-ends, kind="stable")
    lightest = int(np.searchsorted(np.cumsum(ends[by_work]), SHARE * whole)) + 1
    ends[by_work[lightest:]] = 0.0
    bound = partial(least_time, parted, float(ends.sum()) / whole, known)
    if not bound(4 * float(tensors.size.sum())) > 0:  # what two halves can cut
        return 0.0
    return bound(widest_flow(tensors, ends / ends.sum(), bound))


def least_time(parted: Sequence[Sides], covered: float, known: float, width: float) -> float:
    """The shortest step in which sides may do all work, if that is above what is known; else 0.

    Args:
        parted: the same devices, parted in several ways, each of which must allow the step.
        covered: share of all work that the flow's groups have.
        known: seconds that no step is below.
        width: the flow's bytes, K.
    """

    def possible(sides: Sides, seconds: float) -> bool:
        may = np.minimum((sides.speed * seconds + sides.beyond) / covered, 1.0)
        root = np.sqrt(np.maximum(1 - 4 * sides.bandwidth * seconds / width, 0.0))
        most = np.where(may >= (1 + root) / 2, may, np.minimum(may, (1 - root) / 2))
        return bool(most.sum() >= 1 - MARGIN)

    best = 0.0
    for sides in parted if width > 0 else ():
        low = high = max(known, best)
        while not possible(sides, high):
            low, high = high, 2 * high
        for _ in range(HALVINGS if high > low else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if possible(sides, middle) else (middle, high)
        best = max(best, low)
    return best if best > known else 0.0


def sides_of(cluster: Cluster, speed: Floats, beyond: Floats) -> list[Sides]:
    """Devices by hosts, at every scale: together are those that more than some bytes/s join.

    Of a transfer's way from side to side that link counts which most such ways go over.

    Args:
        cluster: the devices.
        speed: (num_devices,) share of all work that each does in a second.
        beyond: (num_devices,) share of it that may lie beyond the step's end.
    """
    between, channels = cluster.channel_between, cluster.channels
    rate = {("", channel.name): channel.bandwidth for channel in channels}
    rate |= {("link", link.name): link.bandwidth for link in cluster.links}
    ways = [[("link", name) for name in each.path] or [("", each.name)] for each in channels]
    bandwidth = np.array([*(channel.bandwidth for channel in channels), 0.0])[between]
    found: dict[bytes, Sides] = {}
    for least in np.unique(bandwidth[between >= 0]):
        of_device = joined(len(bandwidth), *np.nonzero(bandwidth > least))
        if of_device.max() == 0 or of_device.tobytes() in found:
            continue
        carried = np.zeros(of_device.max() + 1)
        for side in range(len(carried)):
            inside = of_device == side
            crossing = [ways[k] for k in np.unique(between[inside[:, None] != inside]).tolist()]
            uses = Counter(part for way in crossing for part in way)
            counted = {max(way, key=lambda part: (uses[part], part)) for way in crossing}
            carried[side] = sum(rate[part] for part in counted)
        of_side: list[Floats] = [
            np.bincount(of_device, weights=each).astype(float) for each in (speed, beyond)
        ]
        found[of_device.tobytes()] = Sides(of_side[0], of_side[1], carried)
    return list(found.values())


def tensors_between(problem: PlacementProblem, thinnest: float) -> Tensors:
    """Tensors that two groups or more make or read, of at least so many bytes and more than 0."""
    graph, num_groups = problem.graph, problem.num_groups
    tensor = np.concatenate([np.arange(graph.num_tensors), graph.edge_tensor])
    group = problem.op_group[np.concatenate([graph.tensor_producer, graph.edge_consumer])]
    key = np.unique(tensor * num_groups + group)
    start = np.searchsorted(key, np.arange(graph.num_tensors + 1) * num_groups)
    group = key % num_groups
    size: dict[bytes, int] = {}
    for number in np.flatnonzero(np.diff(start) > 1).tolist():
        ends = group[start[number] : start[number + 1]].tobytes()
        size[ends] = size.get(ends, 0) + int(graph.tensor_bytes[number])
    wide = [(ends, each) for ends, each in size.items() if each > 0 and each >= thinnest]
    rows = [np.frombuffer(ends, dtype=np.int64) for ends, _ in wide]
    of_end = np.repeat(np.arange(len(wide)), [len(row) for row in rows])
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    return Tensors(
        np.array([each for _, each in wide], dtype=float),
        *compressed(len(wide), of_end, flat),
        *compressed(num_groups, flat, of_end),
    )


def heaviest_part(tensors: Tensors, work: Floats) -> Floats:
    """(num_groups,) the work of those groups that tensors join to one another, the most work."""
    num_groups, num_tensors = len(work), len(tensors.size)
    number = np.repeat(np.arange(num_tensors), np.diff(tensors.end_start))
    part = joined(num_groups + num_tensors, tensors.ends, num_groups + number)[:num_groups]
    return np.where(part == np.bincount(part, weights=work).argmax(), work, 0.0)


def widest_flow(tensors: Tensors, ends: Floats, bound: Callable[[float], float]) -> float:
    """K, so that K times the product of two groups' ends can flow between each two of them at once.

    Args:
        tensors: what carries it; all ends are joined.
        ends: (num_groups,) what flows from and to each group, adding up to 1.
        bound: what K is worth; where no K can be worth anything, it is looked for no longer.
    """
    size, chosen = tensors.size, np.flatnonzero(ends)
    phases = min(PHASES, MOST_VISITS // max(len(chosen) * len(tensors.ends), 1))
    load, length = np.zeros(len(size)), 1 / size
    width = 0.0
    if len(chosen) < 2:
        return width
    for phase in range(phases):
        # The lengths of any time bound the flow: it uses at least these of all that tensors have.
        apart = 0.0
        for part in range(BATCHES):
            sources = np.ascontiguousarray(chosen[part::BATCHES])
            far = send_flow(tensors, ends, sources, length, load)
            apart += far / float(length @ size)
            full = load / size
            length = np.exp(SHARPNESS * (full / full.max() - 1)) / size
        width = max(width, (phase + 1) / float(full.max()))
        if bound(2 / apart) == 0:
            break
    return width


@njit(cache=True)
def send_flow(tensors: Tensors, ends: Floats, sources: Ints, length: Floats, load: Floats) -> float:
    """Adds to `load` half the product of ends, from each source to every group, by shortest paths.

    Tensors have (num_tensors,) lengths.

    Returns:
        The lengths of these paths, by the product of ends.
    """
    num_groups, num_tensors = len(ends), len(length)
    distance, by = np.empty(num_groups), np.empty(num_groups, np.int64)
    entered = np.empty(num_tensors, np.int64)
    done, order = np.empty(num_groups, np.bool_), np.empty(num_groups, np.int64)
    due, nearest = np.empty(len(tensors.ends) + 1), np.empty(len(tensors.ends) + 1, np.int32)
    flow = np.empty(num_groups)
    far = 0.0
    for source in sources:
        distance[:], done[:], entered[:], flow[:] = np.inf, False, -1, 0.0
        distance[source] = 0.0
        waiting = push(due, nearest, 0, 0.0, source)
        found = 0
        while waiting > 0:
            group = nearest[0]
            waiting = pop(due, nearest, waiting)
            if done[group]:
                continue
            done[group] = True
            order[found] = group
            found += 1
            for index in range(tensors.group_start[group], tensors.group_start[group + 1]):
                tensor = tensors.of_group[index]
                if entered[tensor] >= 0:
                    continue
                entered[tensor] = group
                there = distance[group] + length[tensor]
                for end in range(tensors.end_start[tensor], tensors.end_start[tensor + 1]):
                    other = tensors.ends[end]
                    if there < distance[other]:
                        distance[other], by[other] = there, tensor
                        waiting = push(due, nearest, waiting, there, other)
        for index in range(found - 1, 0, -1):
            group = order[index]
            far += ends[source] * ends[group] * distance[group]
            flow[group] += ends[source] * ends[group] / 2
            load[by[group]] += flow[group]
            flow[entered[by[group]]] += flow[group]
    return far
