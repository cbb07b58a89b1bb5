"""Columns of a table, checked: text, whole numbers, real numbers.

`where` is what a column is called in error messages, `row` what a row is. What is no such column is
a `PlacetoError`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError

LARGEST = 2**62


def strings(values: Sequence[str], where: str) -> tuple[str, ...]:
    """A column of text."""
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise PlacetoError(f"{where}[{index}] is {value!r}, expected a string")
    return tuple(values)


def whole(
    values: ArrayLike,
    length: int | None,
    where: str,
    row: str,
    lowest: int,
    bound: int | None = None,
) -> Ints:
    """A column of whole numbers, copied and read-only; floats without a fraction are accepted.

    They go from `lowest` to below `bound`, or to 2**62; without a `length` there are any number.
    """
    if isinstance(values, list | tuple) and bool in set(map(type, values)):
        _check_whole(values, where)
    array = _array(values, None, "whole numbers", length, where, row)
    if len(array) and not np.issubdtype(array.dtype, np.integer):
        _check_whole(values if isinstance(values, list | tuple) else array.astype(object), where)
    _refuse(array < lowest, array, where, f"must be at least {lowest}")
    if bound is not None:
        _refuse(array >= bound, array, where, f"but ids go from 0 to {bound - 1}")
    _refuse(array > LARGEST, array, where, "which is too large (over 2**62)")
    column = array.astype(np.int64)
    column.flags.writeable = False
    return column


def real(values: ArrayLike, length: int, where: str) -> Floats:
    """A column of real numbers from 0, one an op, copied and read-only."""
    array = _array(values, np.float64, "numbers", length, where, "op").copy()
    _refuse(~(array >= 0), array, where, "must not be negative or NaN")
    array.flags.writeable = False
    return array


def check_length(values: Any, length: int, where: str, row: str) -> None:
    """Checks that a column is as long as its table."""
    if len(values) != length:
        raise PlacetoError(f"{where} has {len(values)} values, expected {length}, one per {row}")


def _array(
    values: ArrayLike,
    kind: DTypeLike | None,
    numbers: str,
    length: int | None,
    where: str,
    row: str,
) -> NDArray[Any]:
    try:
        array = np.asarray(values, dtype=kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise PlacetoError(f"{where}: not a list of {numbers}") from error
    if array.ndim != 1:
        raise PlacetoError(f"{where}: expected one value per {row}")
    check_length(array, len(array) if length is None else length, where, row)
    return array


def _refuse(wrong: NDArray[np.bool_], column: NDArray[Any], where: str, said: str) -> None:
    """Says of the first value that is wrong, if any is, what it must be."""
    if wrong.any():
        index = int(np.argmax(wrong))
        raise PlacetoError(f"{where}[{index}] is {column[index]}, {said}")


def _check_whole(cells: Any, where: str) -> None:
    for index, value in enumerate(cells):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or value != value or value in (np.inf, -np.inf) or value != int(value):
            raise PlacetoError(f"{where}[{index}] is {value!r}, expected a whole number")
