import itertools
import math

import numpy as np
import pytest

from placeto import PlacetoError
from placeto.measurement import Effort, Measurement
from placeto.measurement.measured import median_interval


def test_statistics_by_hand():
    measurement = Measurement((4.0, 1.0, 2.0, 10.0))
    assert measurement.feasible
    assert measurement.step_time == 3.0
    assert measurement.deviation == 1.5  # of 1, 2, 1, 7
    assert measurement.interval == (1.0, 10.0)


def test_a_placement_that_failed_takes_forever():
    measurement = Measurement(reason="worker 1 was killed")
    assert not measurement.feasible
    assert measurement.step_time == math.inf
    assert math.isnan(measurement.deviation)
    assert measurement.interval == (math.inf, math.inf)


@pytest.mark.parametrize(
    ("count", "rank"),
    # Tables of the sign test, two-sided 5%: the rank of the lower end.
    [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18)],
)
def test_ranks_of_the_published_tables(count, rank):
    samples = np.random.default_rng(0).permutation(count) + 1.0
    assert median_interval(samples) == (rank, count + 1 - rank)


@pytest.mark.parametrize("count", [6, 9, 11])
def test_coverage_by_counting(count):
    # Every sample is above or below the true median, 0, with equal chance.
    covered = 0
    for signs in itertools.product((-1, 1), repeat=count):
        low, high = median_interval([sign * (1 + i) for i, sign in enumerate(signs)])
        covered += low <= 0 <= high
    assert covered / 2**count >= 0.95


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"warm_up": -1}, "warm_up is -1"),
        ({"steps": 0}, "steps is 0"),
        ({"precision": 0.0}, "precision is 0.0"),
        ({"precision": math.nan}, "precision is nan"),
        ({"deadline_seconds": 0.0}, "deadline_seconds is 0.0"),
        ({"deadline_seconds": math.inf}, "deadline_seconds is inf"),
    ],
)
def test_effort_that_makes_no_sense(fields, message):
    with pytest.raises(PlacetoError, match=message):
        Effort(**fields)
