"""Calling from Python what compiled code alone calls."""

from collections.abc import Callable
from typing import Any

import numba


def from_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls a function made by `placeto.support.jit.inner`."""
    return numba.njit(lambda *args: function(*args))
