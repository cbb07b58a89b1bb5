"""Times and amounts as they are drawn: labels of axes, and shapes that are few enough for a page.

A shape is the `d` of an SVG path, in units of which a step is `UNITS` wide and 1 is high; it is
stretched to the width of the page.
"""

import math
from dataclasses import dataclass

import numpy as np

from placeto.support.arrays import Floats, Ints
from placeto.support.units import format_seconds

UNITS = 20_000  # what can be told apart at ten times the width of a wide page
COLUMNS = 2_000  # of a curve
DENSITIES = (0.95, 0.7, 0.4, 0.0)  # least shares of a block that is covered, densest first
STEPS = (1, 2, 2.5, 5, 10)
MANY_DECADES = 2.0
MOST_LETTERS = 100  # of a name

# Begin and end in nanoseconds, and what it is.
Hover = list[tuple[int, int, str]]


@dataclass(frozen=True)
class Tick:
    """A label on an axis: where it stands, from 0 to 1, and what it says."""

    at: float
    label: str


def time_ticks(seconds: float, count: int = 6) -> list[Tick]:
    """About `count` round times from 0 to at most `seconds`."""
    if not seconds > 0:
        return [Tick(0.0, "0 s")]
    width = round_up(seconds / count)
    numbers = range(math.floor(seconds / width * (1 + 1e-9)) + 1)
    return [Tick(n * width / seconds, format_seconds(n * width)) for n in numbers]


def decade_ticks(low: float, high: float) -> list[Tick]:
    """The powers of ten of seconds from `low` to `high`, on a logarithmic axis.

    Also twice and five times these where the axis is no longer than `MANY_DECADES`.
    """
    first, last = math.log10(low), math.log10(high)
    powers = range(math.floor(first), math.ceil(last) + 1)
    between = (1,) if last - first > MANY_DECADES else (1, 2, 5)
    values = [float(f"{digit}e{power}") for power in powers for digit in between]
    return [
        Tick((math.log10(value) - first) / (last - first), format_seconds(value))
        for value in values
        if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    ]


def range_ticks(low: float, high: float, count: int = 4) -> list[Tick]:
    """About `count` round times between `low` and `high`; `at` counts from `low`."""
    width = round_up((high - low) / count)
    first, last = math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9)
    return [
        Tick((n * width - low) / (high - low), format_seconds(n * width))
        for n in range(first, last + 1)
    ]


def round_up(value: float) -> float:
    """The least of 1, 2, 2.5 or 5 times a power of ten that is no less than a positive value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in STEPS if step * power >= value * (1 - 1e-9))


def merged(spans: Floats, resolution: float) -> tuple[Floats, Floats]:
    """Spans with less than a resolution between them as one; (n, 2), ascending, not overlapping.

    Returns:
        (m, 2) blocks, and (m,) which share of each the spans cover.
    """
    if len(spans) == 0:
        return np.zeros((0, 2)), np.zeros(0)
    first = np.flatnonzero(np.append(True, spans[1:, 0] - spans[:-1, 1] >= resolution))
    last = np.append(first[1:], len(spans)) - 1
    blocks = np.stack([spans[first, 0], spans[last, 1]], axis=1)
    covered = np.add.reduceat(spans[:, 1] - spans[:, 0], first)
    length = blocks[:, 1] - blocks[:, 0]
    return blocks, np.divide(covered, length, out=np.ones(len(blocks)), where=length > 0)


def span_paths(spans: Floats, step: float) -> list[str]:
    """A path for each of `DENSITIES`: the merged spans, (n, 2) seconds, that are as dense."""
    blocks, density = merged(spans * (UNITS / step), 1.0)
    paths, rest = [], np.ones(len(blocks), dtype=bool)
    for least in DENSITIES:
        some = rest & (density >= least)
        rest &= ~some
        paths.append(boxes(blocks[some]))
    return paths


def boxes(blocks: Floats) -> str:
    """A path of boxes, at least one unit wide; blocks (n, 2) in units."""
    begin = np.floor(blocks[:, 0]).astype(int)
    width = np.maximum(np.ceil(blocks[:, 1]).astype(int) - begin, 1)
    return "".join(
        f"M{x} 0h{w}v1h-{w}z" for x, w in zip(begin.tolist(), width.tolist(), strict=True)
    )


def longest(start: Floats, end: Floats, most: int) -> Ints:
    """The numbers of the longest that last at all, by start."""
    seconds = end - start
    numbers = np.argsort(-seconds, kind="stable")[:most]
    numbers = numbers[seconds[numbers] > 0]
    return numbers[np.argsort(start[numbers], kind="stable")]


def nanoseconds(seconds: float) -> int:
    """Seconds as the script of the page has them."""
    return round(float(seconds) * 1e9)


def envelope(
    instants: Floats, values: Floats | Ints, step: float, columns: int = COLUMNS
) -> Floats:
    """(columns,) the largest value that a step function takes in each column of a step.

    `values` (n,) hold from each of `instants` (n,), in seconds ascending from 0, until the next.
    """
    edges = np.linspace(0, step, columns + 1)
    # What holds when a column begins, and what begins within it; its end belongs to the next.
    held = np.searchsorted(instants, edges[:-1], side="right") - 1
    begins = np.searchsorted(instants, edges[1:], side="left") - 1
    begins[-1] = np.searchsorted(instants, step, side="right") - 1
    highest = [values[a : max(a, b) + 1].max() for a, b in zip(held, begins, strict=True)]
    return np.array(highest, dtype=np.float64)


def area_path(heights: Floats) -> str:
    """A path under a curve: (columns,) heights from 0 to 1, evenly over the step."""
    edges = np.flatnonzero(np.append(True, heights[1:] != heights[:-1]))
    x = np.append(edges, len(heights)) * (UNITS / len(heights))
    tops = (f"V{1 - heights[e]:.4f}H{end:.0f}" for e, end in zip(edges, x[1:], strict=True))
    return f"M0 1{''.join(tops)}V1z"


def shortened(name: str) -> str:
    """A name that is not longer than `MOST_LETTERS`: its middle gives way."""
    if len(name) <= MOST_LETTERS:
        return name
    half = MOST_LETTERS // 2
    return f"{name[:half]}…{name[-half + 1 :]}"
