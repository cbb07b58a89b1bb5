"""Where a step's time goes on each device: what it computes, and why it stands still."""

from dataclasses import dataclass

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.schedule import Schedule
from placeto.support.arrays import Bools, Floats

SAME_INSTANT = 1e-9  # as a share of the step: what adding up in another order may change


@dataclass(frozen=True, eq=False)
class DeviceSpans:
    """When one device does what: (n, 2) arrays of begin and end in seconds, none overlapping.

    Attributes:
        compute: an op runs.
        exchange: it sends or receives a tensor, whatever else it might do; an op that had begun
            waits.
        launch: the launch overhead of the op before holds the device.
        transfer: the device is free, and what it needs to go on is on its way to it, or waits for
            its channel.
        wait: the device runs nothing, and what it needs to go on is not made yet: ops on other
            devices have to finish first.
        idle: nothing is left to do.
    """

    compute: Floats
    exchange: Floats
    launch: Floats
    transfer: Floats
    wait: Floats
    idle: Floats

    def seconds(self) -> dict[str, float]:
        """Seconds of each kind; they add up to the step."""
        return {kind: float(np.diff(spans, axis=1).sum()) for kind, spans in vars(self).items()}


def device_spans(problem: PlacementProblem, schedule: Schedule) -> list[DeviceSpans]:
    """What each device does from the step's first instant to its last.

    A device that is free stands still until an input arrives from another device. Of the transfer
    that ends the pause, the one requested first if several arrive at that instant, the time from
    its request on is `transfer`; the time before that is `wait`. Every op has to finish.
    """
    op_device = schedule.devices[problem.op_group]
    parts, takes_time = schedule.transfers.parts, schedule.finish > schedule.start
    step, lanes = schedule.step_time, []
    for number, device in enumerate(problem.cluster.devices):
        ops = np.flatnonzero(takes_time & (op_device == number))
        ops = ops[np.argsort(schedule.start[ops])]
        start, finish = schedule.start[ops], schedule.finish[ops]
        free = np.minimum(finish + device.launch_overhead_seconds, np.append(start[1:], step))
        pauses = _lasting(np.append(0.0, free[:-1]), start) if len(ops) else np.zeros((0, 2))
        begin, end = pauses.T
        requested = np.clip(_requests(schedule, number, end, SAME_INSTANT * step), begin, end)
        own = np.flatnonzero(parts.device == number)
        own = own[np.argsort(parts.start[own])]
        exchange = _lasting(parts.start[own], parts.finish[own])
        rest = {
            "compute": _lasting(start, finish),
            "launch": _lasting(finish, free),
            "transfer": _lasting(requested, end),
            "wait": _lasting(begin, requested),
            "idle": _lasting(free[-1:] if len(ops) else np.zeros(1), np.full(1, step)),
        }
        apart = {kind: _without(spans, exchange) for kind, spans in rest.items()}
        lanes.append(DeviceSpans(exchange=exchange, **apart))
    return lanes


def _requests(schedule: Schedule, device: int, ends: Floats, tolerance: float) -> Floats:
    """When the transfers that end pauses were requested; a pause that none ends is all `wait`."""
    transfers = schedule.transfers
    here = transfers.destinations[:, device]
    arrival, request = transfers.arrival[here], transfers.request[here]
    order = np.lexsort((-request, arrival))
    arrival, request = arrival[order], request[order]
    last = np.searchsorted(arrival, ends + tolerance, side="right") - 1
    found = last >= 0
    found[found] = np.abs(arrival[last[found]] - ends[found]) <= tolerance
    return np.where(found, request[last] if len(request) else ends, ends)


def _lasting(begin: Floats, end: Floats) -> Floats:
    """(n, 2) begins and ends of those that last."""
    spans = np.stack([begin, end], axis=1)
    return spans[end > begin]


def _without(spans: Floats, others: Floats) -> Floats:
    """What (m, 2) others leave of (n, 2) spans; both are in order, and none overlap."""
    if not len(others):
        return spans
    instants = np.unique(np.concatenate([spans.ravel(), others.ravel()]))
    begin, end = instants[:-1], instants[1:]
    middle = (begin + end) / 2
    left = _covered(spans, middle) & ~_covered(others, middle)
    return np.stack([begin[left], end[left]], axis=1)


def _covered(spans: Floats, instants: Floats) -> Bools:
    """(n,) whether each instant is within one of the spans."""
    last = np.searchsorted(spans[:, 0], instants, side="right") - 1
    return (last >= 0) & (instants < np.append(spans[:, 1], 0.0)[last])
