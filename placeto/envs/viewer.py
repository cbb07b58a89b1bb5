"""Pictures of a schedule: a row of text or pixels a device, time from left to right."""

import numpy as np
from numpy.typing import NDArray

from placeto.problem import PlacementProblem
from placeto.simulation import Schedule, simulate
from placeto.support.arrays import Floats, Ints
from placeto.support.units import format_bytes, format_seconds

# A colour a device, by number modulo 8: the Tableau 10 palette without brown and grey.
PALETTE = "4e79a7 f28e2b 59a14f e15759 b07aa1 edc948 76b7b2 ff9da7"
COLOURS = np.frombuffer(bytes.fromhex(PALETTE), dtype=np.uint8).reshape(-1, 3)
SHADES = " ░▒▓█"


def render(problem: PlacementProblem, devices: Ints, mode: str) -> str | NDArray[np.uint8]:
    """The schedule of a placement: text (`"ansi"`) or a picture (`"rgb_array"`)."""
    schedule = simulate(problem, devices)
    return render_ansi(problem, schedule) if mode == "ansi" else render_rgb(problem, schedule)


def busy_share(problem: PlacementProblem, schedule: Schedule, columns: int) -> Floats:
    """How busy each device is in each of `columns` equal slices of the step.

    Returns:
        (num_devices, columns) shares from 0 to 1; 0 where the step never ends.
    """
    share = np.zeros((problem.num_devices, columns))
    if not 0 < schedule.step_time < np.inf:
        return share
    width = schedule.step_time / columns
    device = schedule.devices[problem.op_group]
    edges = np.arange(columns + 1) * width
    for number in range(problem.num_devices):
        ops = np.flatnonzero((device == number) & (schedule.finish > schedule.start))
        if not len(ops):
            continue
        ops = ops[np.argsort(schedule.start[ops])]
        start, finish = schedule.start[ops], schedule.finish[ops]
        done = np.concatenate([[0.0], np.cumsum(finish - start)])
        # Busy time until an instant: ops that ended before, and the part of the one that runs.
        index = np.searchsorted(start, edges, side="right")
        last = np.maximum(index - 1, 0)
        running = np.where(index > 0, np.minimum(edges, finish[last]) - start[last], 0.0)
        share[number] = np.diff(done[last] + running) / width
    return share.clip(0, 1)


def render_ansi(problem: PlacementProblem, schedule: Schedule, columns: int = 60) -> str:
    """The schedule as text: step time, then each device's busy share over time, and peak memory."""
    names = [device.name for device in problem.cluster.devices]
    width = max(map(len, names))
    said = "" if schedule.feasible else ", not feasible"
    step_time = format_seconds(schedule.step_time)
    text = f"{problem.graph.name} on {problem.cluster.name}: step time {step_time}{said}\n"
    share = busy_share(problem, schedule, columns)
    levels = np.ceil(share * (len(SHADES) - 1)).astype(int)
    for name, row, peak in zip(names, levels, schedule.peak_memory.tolist(), strict=True):
        bar = "".join(SHADES[level] for level in row)
        text += f"{name:>{width}} |{bar}| {format_bytes(peak)}\n"
    return text


def render_rgb(
    problem: PlacementProblem, schedule: Schedule, width: int = 640, row: int = 32
) -> NDArray[np.uint8]:
    """The schedule as a picture: a row a device in its colour, the fuller the busier.

    Returns:
        (num_devices * row, width, 3) uint8.
    """
    share = busy_share(problem, schedule, width)[:, :, None]
    colours = COLOURS[np.arange(problem.num_devices) % len(COLOURS)][:, None, :]
    bars = (255 + share * (colours.astype(float) - 255)).round().astype(np.uint8)
    picture = np.repeat(bars, row, axis=0)
    picture[::row] = picture[1::row] = 255
    return picture
