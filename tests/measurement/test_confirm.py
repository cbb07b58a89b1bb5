"""A graph is measured again until a second run agrees."""

import numpy as np
import pytest

from placeto.measurement.calibration.profile import Profile, confirm, farthest

KINDS = ["cpu", "cpu", "gpu"]


def profiles(*seconds):
    return [Profile(each, np.zeros((1, 1)), 0.0) for each in seconds]


def test_the_mean_of_a_kind_is_what_is_expected():
    # Of the two processors 1.1 s is expected, of the other device 4 s.
    found = farthest(KINDS, profiles(1.0, 1.2, 4.0), [1.1, 1.0, 4.0])
    assert found == pytest.approx(0.1)
    assert farthest(KINDS, profiles(1.0, 1.2, 4.0), [1.1, 1.1, 5.0]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("first", "further", "again", "kept", "tries"),
    [
        (1.0, [], [1.02], 1.0, 1),
        (1.3, [1.0], [1.0, 1.01], 1.0, 2),
        # A second run that was disturbed is as good a reason as a first one.
        (1.0, [1.0], [1.5, 1.0], 1.0, 2),
        # What does not come to rest is given up, with the last.
        (1.0, [2.0, 3.0], [1.5, 1.0, 1.0], 3.0, 3),
    ],
)
def test_it_is_measured_again_until_both_agree(first, further, again, kept, tries):
    ends, more = iter(again), iter(further)
    kept_profiles, seconds, tried = confirm(
        ["cpu"],
        profiles(first),
        lambda: [next(ends)],
        lambda: profiles(next(more)),
    )
    assert (kept_profiles[0].step_seconds, tried) == (kept, tries)
    assert seconds == [again[tries - 1]]
    assert next(ends, None) is next(more, None) is None
