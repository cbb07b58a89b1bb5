"""Calling from Python what compiled code alone calls."""

from collections.abc import Callable
from typing import Any

import numba

from placeto.simulation import kernel, state


def from_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls a function made by `placeto.support.jit.inner`."""
    return numba.njit(lambda *args: function(*args))


begin, read = from_python(state.begin), from_python(state.read)
advance = from_python(kernel.advance)
