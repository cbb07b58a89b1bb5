"""Seconds a microbatch of what must stay together, as it would take longer to send."""

import numpy as np

from placeto.bounds.memory import fitting_devices
from placeto.problem import PlacementProblem
from placeto.simulation.loads import Loads, loads_of
from placeto.support.arrays import Floats, Ints
from placeto.support.dags import joined


def together_bound(problem: PlacementProblem) -> float:
    """Seconds a microbatch that a part of the devices needs: one device, or those of a host.

    Either a placement takes t or more, or all flows that keep some resource busy for t, whichever
    channel takes them from one part to another, stay in a part: their groups share its devices.
    So no placement takes less than t and than the least that these sets need, whatever t is. With n
    parts, of k n + 1 sets some part has k + 1.

    The parts are the devices, one by one, and those that faster channels join (`device_parts`).
    """
    t = loads_of(problem)
    work = np.where(fitting_devices(problem), t.work, np.inf)
    return max(_of_parts(t, work, part) for part in device_parts(t))


def device_parts(t: Loads) -> list[Ints]:
    """(num_devices,) numbers of the devices' parts, in several ways: one by one, then larger ones.

    Devices of one part are joined by channels on which the largest flow takes less time than on any
    between parts.
    """
    num_devices = t.work.shape[1]
    parts = [np.arange(num_devices)]
    if len(t.bytes) and len(t.kind):
        seconds = _seconds(t, int(t.bytes.argmax()))[t.channel_between]
        for least in np.unique(seconds[~np.eye(num_devices, dtype=bool)]):
            source, target = np.nonzero(seconds <= least)
            part = joined(num_devices, source, target)
            if 0 < part.max() < parts[-1].max():
                parts.append(part)
    return parts


def _seconds(t: Loads, flow: int | slice) -> Floats:
    """(num_flows, num_channels) s that flows keep the busiest resource of a channel's transfer."""
    slowest = [
        t.link_seconds[t.path[first:last]].max(initial=0.0)
        for first, last in zip(t.path_start[:-1], t.path_start[1:], strict=True)
    ]
    busy: Floats = np.maximum(
        t.costs[flow].max(axis=-1)[..., t.kind], t.bytes[flow, None] * np.array(slowest)
    )
    return busy


def _of_parts(t: Loads, work: Floats, part: Ints) -> float:
    """The bound by these parts; (num_groups, num_devices) `work` is infinite where it cannot be."""
    num_groups, count = len(work), part.max() + 1
    columns = [work[:, part == each].min(axis=1) for each in range(count)]
    share = np.stack(columns, axis=1) / np.bincount(part)  # of each device of a part, at least
    best = _packed(share)
    across = np.unique(t.channel_between[part[:, None] != part])
    if not len(across) or not len(t.sender):
        return best
    apart = _seconds(t, slice(None))[:, across].min(axis=1)
    row = np.repeat(np.arange(len(t.sender)), np.diff(t.reader_start))
    levels = np.unique(apart)
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        stays = apart[row] >= levels[middle]
        sets = joined(num_groups, t.sender[row[stays]], t.readers[stays])
        summed = [np.bincount(sets, column) for column in share.T]
        needed = _packed(np.stack(summed, axis=1))
        best = max(best, min(float(levels[middle]), needed))
        low, high = (middle + 1, high) if needed >= levels[middle] else (low, middle)
    return best


def _packed(share: Floats) -> float:
    """Seconds that some part needs, of (num_sets, num_parts) sets by the part that has them."""
    sets, count = -np.sort(-share.min(axis=1)), share.shape[1]
    if np.isinf(sets[0]):
        return np.inf
    total = np.append(0.0, np.cumsum(sets))
    several = np.arange((len(sets) - 1) // count + 1)
    return float((total[several * count + 1] - total[several * (count - 1)]).max())
