from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import simulate
from placeto.reports.page.shapes import (
    decade_ticks,
    envelope,
    merged,
    range_ticks,
    round_up,
    time_ticks,
)
from placeto.simulation import memory_over_time
from tests.strategies import placed

GAPS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=30)


def spans_of(gaps):
    """(n, 2) spans, after pauses and lengths in tenths."""
    ends = np.cumsum(np.array(gaps).reshape(-1), dtype=float) / 10
    return ends.reshape(-1, 2)


@given(gaps=GAPS)
def test_merged_blocks_cover_the_spans_and_lie_apart(gaps):
    spans = spans_of(gaps)
    blocks, density = merged(spans, 1.0)
    assert (blocks[1:, 0] - blocks[:-1, 1] >= 1.0).all()
    for block, share in zip(blocks, density, strict=True):
        inside = [span for span in spans if block[0] <= span[0] and span[1] <= block[1]]
        assert sum(end - begin for begin, end in inside) == pytest.approx(
            share * (block[1] - block[0])
        )
        assert (inside[0][0], inside[-1][1]) == tuple(block)
    assert sum((blocks[:, 1] - blocks[:, 0]) * density) == pytest.approx(
        (spans[:, 1] - spans[:, 0]).sum()
    )


@given(
    changes=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), max_size=20),
    columns=st.sampled_from([1, 3, 10, 50]),
)
def test_an_envelope_is_the_largest_value_of_each_column(changes, columns):
    function = dict(changes) | {0: 5}
    instants = np.array(sorted(function), dtype=float)
    values = np.array([function[int(instant)] for instant in instants])
    heights = envelope(instants, values, 100.0, columns)
    edges = [100 * column / columns for column in range(columns + 1)]
    for column, (begin, end) in enumerate(pairwise(edges)):
        last = column == columns - 1
        within = [v for i, v in function.items() if begin < i < end or (last and i == end)]
        held = function[max(i for i in function if i <= begin)]
        assert heights[column] == max([held, *within])


@given(example=placed(max_ops=30))
def test_the_highest_of_a_memory_curve_is_the_peak(example):
    problem, devices = example
    schedule = simulate(problem, devices)
    assume(np.isfinite(schedule.step_time) and schedule.step_time > 0)
    instants, memory = memory_over_time(problem, schedule)
    for device in range(problem.num_devices):
        heights = envelope(instants, memory[:, device], schedule.step_time)
        assert heights.max() == schedule.peak_memory[device]


@given(st.floats(1e-9, 9e3))
def test_ticks_of_time_are_round_and_within(seconds):
    ticks = time_ticks(seconds)
    assert 3 <= len(ticks) <= 8
    assert ticks[0].label == "0 s"
    assert all(0 <= tick.at <= 1 + 1e-9 for tick in ticks)
    assert all(len(tick.label.split()[0].replace(".", "")) <= 4 for tick in ticks)


def test_ticks_by_hand():
    assert [(tick.at, tick.label) for tick in time_ticks(0.5)] == [
        (pytest.approx(n / 5), label)
        for n, label in enumerate(["0 s", "100 ms", "200 ms", "300 ms", "400 ms", "500 ms"])
    ]
    assert [tick.label for tick in decade_ticks(0.003, 30.0)] == [
        "10 ms", "100 ms", "1 s", "10 s",
    ]  # fmt: skip
    assert [tick.label for tick in decade_ticks(0.4, 6.0)] == ["500 ms", "1 s", "2 s", "5 s"]
    assert [tick.at for tick in decade_ticks(0.001, 10.0)] == [0, 0.25, 0.5, 0.75, 1]
    assert [(tick.at, tick.label) for tick in range_ticks(0.9, 2.1, 3)] == [
        (pytest.approx(0.1 / 1.2), "1 s"),
        (pytest.approx(0.6 / 1.2), "1.5 s"),
        (pytest.approx(1.1 / 1.2), "2 s"),
    ]
    assert [round_up(value) for value in (1.0, 1.1, 2.2, 3.0, 7.0, 0.02)] == [
        1, 2, 2.5, 5, 10, 0.02,
    ]  # fmt: skip
    assert [tick.label for tick in time_ticks(0.0)] == ["0 s"]
