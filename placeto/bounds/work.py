"""Work over devices: what cannot be done faster even if it is divided at will."""

import numpy as np

from placeto.bounds.lone import below_lone
from placeto.bounds.memory import dual_prices, fitting_devices
from placeto.bounds.relaxed import Classes, Relaxed, allowed_classes, device_classes
from placeto.bounds.together import together_bound
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints

MANY_GROUPS = 4096  # above, no linear program is solved
LEVELS = 300  # of heads and of tails that windows are tried at


def work_bound(problem: PlacementProblem) -> float:
    """Seconds that the devices need if they share out the groups' work and never wait.

    An op holds its device for its seconds and, if these are not 0, for the launch overhead; only
    the last overhead on each device may lie beyond the last finish. Groups may be divided; their
    parameters must fit (a linear program, see `best_prices`).
    """
    classes = device_classes(problem)
    return below_lone(problem, _divided(problem, classes, classes.overhead))


def throughput_bound(problem: PlacementProblem) -> float:
    """Seconds a microbatch that no feasible placement is below, in a pipeline that never drains.

    The most of what the devices need that share out the groups' work, launch overheads included,
    and of what groups need that stay together, since it would take longer to send what is between
    them (`together_bound`). What is sent beside work is left out.
    """
    classes = device_classes(problem)
    divided = _divided(problem, classes, np.zeros(len(classes.size)))
    shared = max(divided / problem.graph.num_microbatches, together_bound(problem))
    return below_lone(problem, shared, throughput=True)


def _divided(problem: PlacementProblem, classes: Classes, beyond: Floats) -> float:
    """What the devices need that share out the work; `beyond` as in `best_prices`."""
    held = held_seconds(problem, classes)
    parameters = problem.group_parameters[:, None].astype(float)
    room = np.bincount(classes.of_device, weights=problem.memory_limit)
    bound = 0.0
    for time, memory in best_prices(problem, classes, beyond):
        cost = priced(held, time / classes.size) + parameters * memory
        bound = max(bound, float(cost.min(axis=1).sum() - memory @ room - time @ beyond))
    return bound


def best_prices(
    problem: PlacementProblem, classes: Classes, beyond: Floats
) -> list[tuple[Floats, Floats]]:
    """Prices of devices' time and memory, for which work costs no more than the step time.

    Let T be the step time, and x the share of a group on a class of m devices. Their ops hold them
    for sum(held x) <= m (T + beyond), where (num_classes,) `beyond` is how long after the step's
    end, and sum(parameters x) <= memory. With prices that are not negative, y of time adding up to
    1 over the classes and z of bytes, any placement has

        T >= sum over groups of min over classes (y held / m + z parameters)
             - sum over classes (y beyond + z memory),

    the dual of the linear program that divides groups to make T least. Any such prices prove a
    bound; the program's own prove the best.

    Returns (num_classes,) y and z, several; without the program where there are many groups.
    """
    held = held_seconds(problem, classes)
    count = len(classes.size)
    zero = np.zeros(count)
    by_number = classes.size / classes.size.sum()
    whole = np.where(np.isfinite(held), held, 0.0).sum(axis=0)
    whole = np.maximum(whole, max(whole.max() * 1e-9, np.finfo(float).tiny))
    speed = classes.size * (whole.min() / whole)
    prices = [(by_number, zero), (speed / speed.sum(), zero)]
    if count == 1 or len(held) > MANY_GROUPS:
        return prices
    can = np.isfinite(held)
    scale = max(float(held[can].max()), np.finfo(float).tiny)
    parameters = problem.group_parameters[:, None].astype(float)
    room = np.bincount(classes.of_device, weights=problem.memory_limit)
    largest = max(float(parameters.max()), 1.0)
    uses = [held / classes.size / scale, np.broadcast_to(parameters / largest, held.shape)]
    limits = np.concatenate([beyond / scale, room / largest])
    found = dual_prices(can, uses, np.ones(count), limits)
    time, memory = found[:count], found[count:]
    if time.sum() > 0:
        prices.append((time / time.sum(), memory / time.sum() * scale / largest))
    return prices


def window_bound(
    problem: PlacementProblem, relaxed: Relaxed, heads: Floats, tails: Floats
) -> float:
    """Seconds that are left for the work of ops that start late and end early.

    Ops with heads from a on and tails from b on all run in a window of T - a - b seconds; so T is
    at least a + b and what their work needs, by prices of the devices' time. Heads and tails as in
    `group_bound`.
    """
    classes = device_classes(problem)
    may = relaxed.allowed[relaxed.group]
    head, tail = heads.min(axis=1), tails.min(axis=1)
    some = (relaxed.seconds > 0).any(axis=1)
    if not some.any():
        return 0.0
    held = relaxed.seconds + np.where(relaxed.seconds > 0, classes.overhead, 0.0)
    held = np.where(may, held, np.inf)[some]
    row, first = _levels(head[some])
    column, last = _levels(tail[some])
    bound = 0.0
    for time, _ in best_prices(problem, classes, classes.overhead):
        table = np.zeros((len(first), len(last)))
        np.add.at(table, (row, column), priced(held, time / classes.size).min(axis=1))
        inside = table[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
        needed = first[:, None] + last + inside - time @ classes.overhead
        bound = max(bound, float(needed[inside > 0].max(initial=0.0)))
    return bound


def held_seconds(problem: PlacementProblem, classes: Classes) -> Floats:
    """(num_groups, num_classes) seconds that a group holds its device; infinite if not allowed."""
    seconds = problem.op_seconds[:, classes.first]
    held = seconds + np.where(seconds > 0, classes.overhead, 0.0)
    columns = [np.bincount(problem.op_group, weights=column) for column in held.T]
    allowed = allowed_classes(fitting_devices(problem), classes)
    return np.where(allowed, np.stack(columns, axis=1), np.inf)


def priced(held: Floats, prices: Floats) -> Floats:
    """Held seconds times prices; infinite where an op or a group is not allowed."""
    can = np.isfinite(held)
    return np.where(can, np.where(can, held, 0.0) * prices, np.inf)


def _levels(values: Floats) -> tuple[Ints, Floats]:
    """Which of a few levels, all values of the array, each value is at or above; and these."""
    levels = np.unique(np.quantile(values, np.linspace(0, 1, LEVELS), method="lower"))
    return np.searchsorted(levels, values, side="right") - 1, levels
