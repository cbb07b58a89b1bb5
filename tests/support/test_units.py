import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacetoError
from placeto.support.units import format_bytes, format_seconds, parse_quantity


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("7.6GB/s", "bytes/second", 7.6e9),
        ("12GiB", "bytes", 12 * 2**30),
        ("5.7us", "seconds", 5.7e-6),
        ("5.7 µs", "seconds", 5.7e-6),
        (" 3 ns ", "seconds", 3e-9),
        (".5ms", "seconds", 5e-4),
        ("2.s", "seconds", 2),
        ("1e3kB", "bytes", 1e6),
        ("+4", "bytes", 4),
        ("1.5KiB/s", "bytes/second", 1536),
        (25, "seconds", 25),
        (0.25, "seconds", 0.25),
        (10**400, "bytes", math.inf),
    ],
)
def test_parse(text: object, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension, "x") == value


@pytest.mark.parametrize(
    ("value", "dimension"),
    [
        ("5 GB", "seconds"), ("5s", "bytes"), ("5GB", "bytes/second"),
        ("-5s", "seconds"), (-1, "seconds"), (-(10**400), "seconds"), (math.nan, "seconds"),
        (True, "seconds"), (None, "seconds"), ([1], "seconds"), ("", "seconds"), ("GB", "bytes"),
        ("1 GB GB", "bytes"), ("1gb", "bytes"), ("nan", "bytes"), ("inf", "bytes"),
    ],
)  # fmt: skip
def test_parse_errors(value: object, dimension: str) -> None:
    with pytest.raises(PlacetoError) as caught:
        parse_quantity(value, dimension, "memory of gpu0")
    assert str(caught.value).startswith(f"memory of gpu0 is {value!r}, expected {dimension} such")


@given(st.decimals(0, 10**6, places=3), st.sampled_from(["ns", "us", "ms", "s"]))
def test_decimal_units_round_once(number: object, unit: str) -> None:
    exponent = {"ns": -9, "us": -6, "ms": -3, "s": 0}[unit]
    assert parse_quantity(f"{number:f}{unit}", "seconds", "x") == float(f"{number:f}e{exponent}")


@given(st.text())
def test_any_text(text: str) -> None:
    try:
        assert parse_quantity(text, "bytes", "x") >= 0
    except PlacetoError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (1.23456, "1.235 s"), (0.0123, "12.3 ms"), (5.7e-6, "5.7 us"), (3e-9, "3 ns"),
     (math.inf, "-"), (math.nan, "-"), (-0.5, "-500 ms"), (9999.4, "9999 s"), (12345.6, "12346 s")],
)  # fmt: skip
def test_format_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (1003 * 2**20, "1003 MiB"),
        (12 * 2**30, "12 GiB"),
        (math.inf, "-"),
    ],
)
def test_format_bytes(count: float, text: str) -> None:
    assert format_bytes(count) == text
