"""What the timeline tells of what lies under the pointer: the longest ops and transfers."""

import numpy as np

from placeto.problem import PlacementProblem
from placeto.reports.page.report import Report
from placeto.reports.page.words import shortened
from placeto.simulation import Schedule
from placeto.support.arrays import Floats, Ints
from placeto.support.units import format_bytes, format_seconds

MOST_OPS = 3_000  # of all devices; more would make the page large and are too short to point at
MOST_TRANSFERS = 1_500

# Begin and end in nanoseconds, and what it is.
Hover = list[tuple[int, int, str]]


def hover(report: Report) -> dict[str, list[Hover]]:
    """Of each device and each channel."""
    problem, schedule = report.placement.problem, report.schedule
    return {
        "device": longest_ops(problem, schedule),
        "channel": longest_transfers(problem, schedule),
    }


def longest_ops(problem: PlacementProblem, schedule: Schedule) -> list[Hover]:
    """(num_devices,) the longest ops by device, in the order of their starts."""
    graph = problem.graph
    devices = schedule.devices[problem.op_group]
    hover: list[Hover] = [[] for _ in range(problem.num_devices)]
    for op in _longest(schedule.start, schedule.finish, MOST_OPS).tolist():
        begin, end = schedule.start[op], schedule.finish[op]
        text = (
            f"{shortened(graph.op_names[op])}\n{shortened(graph.op_types[op])}, "
            f"{format_seconds(end - begin)}, group {problem.op_group[op]}"
        )
        hover[devices[op]].append((_nanoseconds(begin), _nanoseconds(end), text))
    return hover


def longest_transfers(problem: PlacementProblem, schedule: Schedule) -> list[Hover]:
    """(num_channels,) the longest transfers by channel, in the order of their starts."""
    graph, transfers = problem.graph, schedule.transfers
    hover: list[Hover] = [[] for _ in problem.cluster.channels]
    for index in _longest(transfers.start, transfers.sent, MOST_TRANSFERS).tolist():
        tensor = transfers.tensor[index]
        begin, end = transfers.start[index], transfers.sent[index]
        to = ", ".join(
            problem.cluster.devices[device].name
            for device in np.flatnonzero(transfers.destinations[index])
        )
        text = (
            f"{shortened(graph.op_names[graph.tensor_producer[tensor]])}\n"
            f"{format_bytes(graph.tensor_bytes[tensor])} to {to}, {format_seconds(end - begin)}, "
            f"queued for {format_seconds(begin - transfers.request[index])}"
        )
        hover[transfers.channel[index]].append((_nanoseconds(begin), _nanoseconds(end), text))
    return hover


def _longest(start: Floats, end: Floats, most: int) -> Ints:
    """The numbers of the longest that last at all, by start."""
    seconds = end - start
    longest = np.argsort(-seconds, kind="stable")[:most]
    longest = longest[seconds[longest] > 0]
    return longest[np.argsort(start[longest], kind="stable")]


def _nanoseconds(seconds: float) -> int:
    return round(float(seconds) * 1e9)
