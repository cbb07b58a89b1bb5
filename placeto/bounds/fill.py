"""Fill and drain: what devices wait for before their first op, and the step after their last."""

from itertools import product

import numpy as np

from placeto.bounds.relaxed import Relaxed, device_classes, mirror
from placeto.bounds.work import best_prices, priced
from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Floats
from placeto.support.jit import njit

LONG = 0.85  # of all work, which the longest ops are: always taken
EARLY = (0.0, 0.015, 0.03, 0.06, 0.12, 0.25)  # of the longest head or tail: what is left out


def fill_bound(problem: PlacementProblem, relaxed: Relaxed, heads: Floats, tails: Floats) -> float:
    """Seconds that the devices need if each waits for its first op, and the step for its last.

    Take some of the ops. Those on one device are worked on from the start of the first to the end
    of the last. What the first waits for of these ops is on other devices, and is transferred:
    `first_heads`; the last one's tail likewise. No two devices have a group in common, so that of D
    devices these seconds are no less than the D least of different groups. By prices of the
    devices' time (see `best_prices`), T is at least what the work needs, and the seconds before and
    after it; or else a device has none of the ops, and the others have to do all of it.

    Heads and tails, (num_ops, num_classes) seconds, are as in `group_bound`. Left out are short ops
    near the beginning and the end: any device may have some, and nothing to do for long after.
    """
    classes = device_classes(problem)
    if len(classes.of_device) == 1 or not np.isfinite(heads.min(axis=1)).all():
        return 0.0
    seconds = np.where(relaxed.allowed[relaxed.group], relaxed.seconds, np.inf)
    held = seconds + np.where(relaxed.seconds > 0, classes.overhead, 0.0)
    shortest, head, tail = (each.min(axis=1) for each in (seconds, heads, tails))
    by_length = np.argsort(-shortest, kind="stable")
    total = np.cumsum(shortest[by_length])
    works = shortest > 0
    long = np.zeros(len(works), dtype=bool)
    long[by_length[: np.searchsorted(total, LONG * total[-1]) + 1]] = True
    backwards, from_end = mirror(relaxed), tails[::-1].copy()
    bound, prices = 0.0, best_prices(problem, classes, classes.overhead)
    far = [(head >= part * head.max(), tail >= part * tail.max()) for part in EARLY]
    some = [works & (long | (start & end)) for (start, _), (_, end) in product(far, far)]
    for chosen in {each.tobytes(): each for each in some}.values():  # many are the same
        before = _of_groups(relaxed, first_heads(relaxed, heads, chosen), chosen)
        after = first_heads(backwards, from_end, chosen[::-1].copy())[::-1]
        after = _of_groups(relaxed, after, chosen)
        for time, _ in prices:
            weight = np.sort((time / classes.size)[classes.of_device])[::-1]
            work = float(priced(held[chosen], time / classes.size).min(axis=1).sum())
            work -= float(time @ classes.overhead)
            if weight[-1] <= 0 or len(before) < len(weight):
                continue
            fewer = work / (1 - weight[-1])
            bound = max(bound, min(fewer, work + float(weight @ (before + after)[: len(weight)])))
    return bound


def _of_groups(relaxed: Relaxed, heads: Floats, chosen: Bools) -> Floats:
    """(n,) the least of each group that has any chosen ops, ascending."""
    least = np.full(len(relaxed.allowed), np.inf)
    np.minimum.at(least, relaxed.group[chosen], heads[chosen].min(axis=1))
    return np.sort(least[np.unique(relaxed.group[chosen])])


@njit(cache=True)
def first_heads(relaxed: Relaxed, heads: Floats, chosen: Bools) -> Floats:
    """(num_ops, num_classes) seconds before an op, if no chosen op is before it on its device.

    Of chosen ops what it waits for is transferred, or has been by one that waited for it. Infinite
    where a chosen op of its own group always is before it. Given are the heads of ops wherever
    others are, and which are (num_ops,) chosen.
    """
    group, seconds = relaxed.group, relaxed.seconds
    num_classes = seconds.shape[1]
    found = heads.copy()
    for op in range(len(group)):
        for edge in range(relaxed.start[op], relaxed.start[op + 1]):
            before = relaxed.producer[edge]
            together = group[before] == group[op]
            for c in range(num_classes):
                ready = np.inf
                if not chosen[before]:
                    ready = found[before, c] + seconds[before, c] + relaxed.wait[edge, c]
                if not together:
                    for k in range(num_classes):
                        end = heads[before, k] + seconds[before, k]
                        ready = min(ready, end + relaxed.transfer[edge, k, c])
                found[op, c] = max(found[op, c], ready)
    return found
