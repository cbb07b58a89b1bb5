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
    return _text(problem, schedule) if mode == "ansi" else _picture(problem, schedule)


def _busy_share(problem: PlacementProblem, schedule: Schedule, columns: int) -> Floats:
    """(num_devices, columns) how busy each device is in equal slices of the step, from 0 to 1.

    It is 0 where the step never ends.
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


def _text(problem: PlacementProblem, schedule: Schedule) -> str:
    """Step time, then each device's busy share over time, and peak memory."""
    names = [device.name for device in problem.cluster.devices]
    width = max(map(len, names))
    said = "" if schedule.feasible else ", not feasible"
    step_time = format_seconds(schedule.step_time)
    text = f"{problem.graph.name} on {problem.cluster.name}: step time {step_time}{said}\n"
    levels = np.ceil(_busy_share(problem, schedule, 60) * (len(SHADES) - 1)).astype(int)
    for name, row, peak in zip(names, levels, schedule.peak_memory.tolist(), strict=True):
        bar = "".join(SHADES[level] for level in row)
        text += f"{name:>{width}} |{bar}| {format_bytes(peak)}\n"
    return text


def _picture(problem: PlacementProblem, schedule: Schedule) -> NDArray[np.uint8]:
    """(num_devices * 32, 640, 3) a row a device in its colour, the fuller the busier."""
    share = _busy_share(problem, schedule, 640)[:, :, None]
    colours = COLOURS[np.arange(problem.num_devices) % len(COLOURS)][:, None, :]
    bars = (255 + share * (colours.astype(float) - 255)).round().astype(np.uint8)
    picture = np.repeat(bars, 32, axis=0)
    picture[::32] = picture[1::32] = 255
    return picture
