"""Quantities with units, from text and to text."""

import math
import re
import sys

from placeto.support.errors import PlacetoError

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BYTES = {f"{prefix}B": scale for prefix, scale in (_DECIMAL | _BINARY).items()}
UNITS = {
    "bytes": _BYTES,
    "bytes/second": {f"{unit}/s": scale for unit, scale in _BYTES.items()},
    "seconds": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµ/]*)\s*")


def parse_quantity(value: object, dimension: str, where: str) -> float:
    """Reads `7.6GB/s`, `12GiB` or `5.7us`; a bare number is in the SI unit itself.

    Raises:
        PlacetoError: not a number with a unit of that dimension of `UNITS`, negative, or NaN.
    """
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = math.inf if value > sys.float_info.max else float(max(value, -1))
    elif isinstance(value, str) and (match := _QUANTITY.fullmatch(value)):
        digits, unit = match.groups()
        scale = 1.0 if unit == "" else UNITS[dimension].get(unit, math.nan)
        number = float(digits) * scale
        power = f"{scale:.0e}"  # such as 1e+09
        if float(power) == scale and "e" not in digits.lower():
            # float() of the exponent notation rounds once, where a product would round twice.
            number = float(digits + power[1:])
    if math.isnan(number) or number < 0:
        units = ", ".join(UNITS[dimension])
        raise PlacetoError(
            f"{where} is {value!r}, expected {dimension} such as 1.5 with a unit of {units}"
        )
    return number


def format_seconds(seconds: float) -> str:
    """Seconds for a person: three or four significant digits and a unit; no powers of ten."""
    if not math.isfinite(seconds):
        return "-"
    if abs(seconds) >= 9999.5:
        return f"{seconds:.0f} s"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return "0 s" if seconds == 0 else f"{seconds * 1e9:.4g} ns"


def format_bytes(count: float) -> str:
    """Bytes for a person: three significant digits and a binary unit."""
    if not math.isfinite(count):
        return "-"
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(count) >= scale:
            value = count / scale
            return f"{value:.{4 if abs(value) >= 1000 else 3}g} {unit}"
    return f"{count:.0f} B"
