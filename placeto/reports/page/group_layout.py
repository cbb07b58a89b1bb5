"""The group graph laid out along time: a lane a device, groups from left to right as they start."""

from dataclasses import dataclass

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation import Schedule
from placeto.support.arrays import Floats, Ints

WIDTH = 1000.0  # px that circles are kept apart at
LEAST_RADIUS, MOST_RADIUS = 2.5, 8.0
ROW = 6.0  # px; a large circle takes several rows
MARGIN = 4.0  # px above and below a lane's circles
TITLE = 16.0  # px above them, for the device's name
AFTER_LAST = 1.04  # where the axis ends, over the last start
MOST_GROUPS = 1_000
MOST_EDGES = 1_500


@dataclass(frozen=True, eq=False)
class GroupLayout:
    """Circles for groups, lines for edges, lanes for devices.

    Attributes:
        group: (n,) the groups that are drawn, by start.
        end: seconds, where the time axis ends: a little after the last of them has started.
        x: (n,) from 0 to 1, when each starts.
        y: (n,) px from the top.
        radius: (n,) px; the area of a circle grows with the group's seconds of work.
        edge: (m, 2) numbers of circles, source and target.
        edge_bytes: (m,) bytes.
        lane_top: (num_devices + 1,) px where each device's lane begins, and the end.
        hidden_groups: how many groups are not drawn, as they work the least or not at all.
        hidden_edges: how many edges between drawn groups are not drawn, as they carry the least;
            those within a device are left out first.
    """

    group: Ints
    end: float
    x: Floats
    y: Floats
    radius: Floats
    edge: Ints
    edge_bytes: Ints
    lane_top: Floats
    hidden_groups: int
    hidden_edges: int


def group_starts(problem: PlacementProblem, schedule: Schedule) -> Floats:
    """(num_groups,) seconds when each group's work begins.

    That is when a tenth of its work is done: nearly every group has a weight or a constant that is
    read at the first instant, long before what matters. A group without work: its first start.
    """
    begin, ops = problem.group_ops
    starts = np.zeros(problem.num_groups)
    for group, own in enumerate(np.split(ops, begin[1:-1])):
        own = own[np.argsort(schedule.start[own], kind="stable")]
        done = np.cumsum(schedule.finish[own] - schedule.start[own])
        starts[group] = schedule.start[own[np.argmax(done >= 0.1 * done[-1])]]
    return starts


def lay_out(problem: PlacementProblem, schedule: Schedule) -> GroupLayout:
    """Places circles so that none in a lane overlaps another, at a width of `WIDTH` or more.

    Groups without work are left out.
    """
    devices = schedule.devices
    seconds = problem.group_seconds[np.arange(problem.num_groups), devices]
    starts = group_starts(problem, schedule)
    ranked = np.argsort(-seconds, kind="stable")[:MOST_GROUPS]
    # Hundreds of groups may hold nothing but weights and constants, all read at the first instant.
    drawn = np.sort(ranked[seconds[ranked] > 0])
    drawn = drawn[np.argsort(starts[drawn], kind="stable")]
    last = float(starts[drawn].max())
    end = min(last * AFTER_LAST, schedule.step_time) if last > 0 else schedule.step_time
    x = starts[drawn] / end
    share = np.sqrt(seconds[drawn] / max(seconds.max(), 1e-300))
    radius = LEAST_RADIUS + (MOST_RADIUS - LEAST_RADIUS) * share
    lane_top = np.zeros(problem.num_devices + 1)
    y = np.zeros(len(drawn))
    for device in range(problem.num_devices):
        own = np.flatnonzero(devices[drawn] == device)
        row, height = rows_apart(x[own] * WIDTH, radius[own])
        rows = int((row + height).max(initial=3))
        lane_top[device + 1] = lane_top[device] + TITLE + rows * ROW + 2 * MARGIN
        y[own] = lane_top[device] + TITLE + MARGIN + (row + height / 2) * ROW
    circle = np.full(problem.num_groups, -1)
    circle[drawn] = np.arange(len(drawn))
    source, target, size = problem.group_edges
    between = np.flatnonzero((circle[source] >= 0) & (circle[target] >= 0))
    within = devices[source[between]] == devices[target[between]]
    shown = between[np.lexsort((-size[between], within))[:MOST_EDGES]][::-1]
    edge = np.stack([circle[source[shown]], circle[target[shown]]], axis=1)
    hidden_groups, hidden_edges = problem.num_groups - len(drawn), len(between) - len(shown)
    return GroupLayout(
        drawn, end, x, y, radius, edge, size[shown], lane_top, hidden_groups, hidden_edges
    )


def rows_apart(x: Floats, radius: Floats) -> tuple[Ints, Ints]:
    """The first rows for each circle, (n,) by ascending x in px, where it touches none before it.

    Returns:
        (n,) the uppermost row of each, and (n,) how many rows of `ROW` px it is high.
    """
    height = np.ceil(2 * radius / ROW).astype(np.int64)
    row = np.zeros(len(x), dtype=np.int64)
    ends: list[float] = []  # px, of each row
    for index, (begin, end) in enumerate(zip(x - radius, x + radius, strict=True)):
        high, first = int(height[index]), 0
        while taken := [n for n, last in enumerate(ends[first : first + high], 1) if last > begin]:
            first += taken[-1]
        ends.extend([-np.inf] * (first + high - len(ends)))
        ends[first : first + high] = [end] * high
        row[index] = first
    return row, height
