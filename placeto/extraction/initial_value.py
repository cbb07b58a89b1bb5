"""What is remembered of a variable's value before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALL = 16


@dataclass(frozen=True)
class InitialValue:
    """A value by which a variable can be initialized, without its every element.

    Attributes:
        stored: the elements, or one element that all others equal; None for many different
            floating-point numbers.
        mean: their mean.
        deviation: their standard deviation.
    """

    stored: NDArray[Any] | None
    mean: float = 0.0
    deviation: float = 0.0


def summarized(value: NDArray[Any]) -> InitialValue:
    """The summary of a value: exact if it is small, constant, or not of floating-point type."""
    if value.size <= _SMALL:
        return InitialValue(value)
    if (value == value.flat[0]).all():
        return InitialValue(value.flat[0])
    if not np.issubdtype(value.dtype, np.floating):
        return InitialValue(value)
    mean = float(value.mean(dtype=np.float64))
    square = float(np.square(value).mean(dtype=np.float64))
    return InitialValue(None, mean, max(square - mean**2, 0.0) ** 0.5)
