"""A graph is measured again until a second run agrees."""

import numpy as np
import pytest

from placeto.measurement.calibration.profile import Profile, confirm, farthest

KINDS = ["cpu", "cpu", "gpu"]


def profiles(*seconds, pace=1.0):
    return [Profile((each,), np.zeros((1, 1)), (0.0,), pace) for each in seconds]


def test_the_mean_of_a_kind_is_what_is_expected():
    # Of the two processors 1.1 s is expected, of the other device 4 s.
    many = profiles(1.0, 1.2, 4.0)
    assert farthest(KINDS, many, [1.1, 1.0, 4.0], [True] * 3) == pytest.approx(0.1)
    assert farthest(KINDS, many, [1.1, 1.1, 5.0], [True] * 3) == pytest.approx(0.2)
    assert farthest(KINDS, many, [1.1, 1.0, 5.0], [True, True, False]) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("first", "further", "again", "kept", "tries"),
    [
        (1.0, [], [1.02], 1.0, 1),
        # All that was measured counts.
        (1.3, [1.0, 1.0], [1.0, 1.0, 1.0], 1.0, 3),
        (1.0, [1.02], [1.08, 1.02], 1.01, 2),
        # A second run that was disturbed is as good a reason as a first one.
        (1.0, [1.0], [1.5, 1.0], 1.0, 2),
        # What does not come to rest is given up.
        (1.0, [2.0, 3.0], [1.5, 1.0, 1.0], 2.0, 3),
    ],
)
def test_it_is_measured_again_until_both_agree(first, further, again, kept, tries):
    ends, more = iter(again), iter(further)
    kept_profiles, seconds, tried = confirm(
        ["cpu"],
        profiles(first),
        lambda: profiles(next(ends)),
        lambda: profiles(next(more)),
    )
    assert (kept_profiles[0].step_seconds, tried) == (kept, tries)
    assert seconds == [again[tries - 1]]
    assert next(ends, None) is next(more, None) is None


def test_one_try_is_not_repeated():
    _, seconds, tries = confirm(
        ["cpu"], profiles(1.0), lambda: profiles(1.5), lambda: pytest.fail("again"), most=1
    )
    assert (seconds, tries) == ([1.5], 1)


def test_cores_that_were_slowed_down_say_nothing_of_those_that_were_not():
    slow = profiles(1.4, pace=1.4)
    (kept,), seconds, tries = confirm(
        ["cpu"], profiles(1.0), lambda: slow, lambda: pytest.fail("again")
    )
    assert (kept.steps, seconds, tries) == ((1.0,), [1.4], 1)
    # And what was slowed down itself is measured again, and does not count then.
    (kept,), seconds, tries = confirm(["cpu"], slow, lambda: profiles(1.0), lambda: profiles(1.0))
    assert (kept.steps, seconds, tries) == ((1.0,), [1.0], 2)
    (both,), *_ = confirm(["cpu"], slow, lambda: slow, lambda: pytest.fail("again"))
    assert both.steps == (1.4,)
