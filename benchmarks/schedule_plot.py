"""A schedule as bars, with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation import Schedule
from placeto.support.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_schedule(
    problem: PlacementProblem, schedule: Schedule, ax: "Axes", title: str, until_seconds: float
) -> None:
    """Draws when each device computes and each channel carries, time from left to right.

    Args:
        problem: what is placed.
        schedule: finite.
        ax: where to draw.
        title: what to write above, before the step time.
        until_seconds: where the time axis ends.
    """
    transfers = schedule.transfers
    device = schedule.devices[problem.op_group]
    source = device[problem.graph.tensor_producer[transfers.tensor]]
    for number in range(problem.num_devices):
        colour = f"C{number}"
        on = (device == number) & (schedule.finish > schedule.start)
        _bars(ax, schedule.start[on], schedule.finish[on], (number - 0.4, 0.55), colour)
        out = source == number
        _bars(ax, transfers.start[out], transfers.sent[out], (number + 0.18, 0.2), "0.45")
    ax.set_yticks(range(problem.num_devices), [d.name for d in problem.cluster.devices])
    ax.set_ylim(problem.num_devices - 0.5, -0.5)
    ax.set_xlim(0, until_seconds * 1e3)
    ax.set_xlabel("ms")
    ax.set_title(f"{title} {format_seconds(schedule.step_time)}", loc="left", fontsize=10)


def _bars(ax: Any, start: Any, finish: Any, rows: tuple[float, float], colour: str) -> None:
    """Bars of one row; ops that touch are drawn as one, or edges would hide short ones."""
    order = np.argsort(start)
    start, finish = start[order] * 1e3, finish[order] * 1e3
    if len(start) == 0:
        return
    breaks = np.flatnonzero(start[1:] > np.maximum.accumulate(finish)[:-1] + 0.05) + 1
    begins = start[np.concatenate([[0], breaks])]
    ends = np.maximum.reduceat(finish, np.concatenate([[0], breaks]))
    ax.broken_barh(list(zip(begins, ends - begins, strict=True)), rows, color=colour, linewidth=0)
