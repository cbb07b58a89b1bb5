"""Axes: round numbers to label them with."""

import math
from dataclasses import dataclass

from placeto.support.units import format_seconds

STEPS = (1, 2, 2.5, 5, 10)
MANY_DECADES = 2.0


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
