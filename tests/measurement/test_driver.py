"""What the driver says of an error."""

import time
from functools import partial
from itertools import count

import pytest

from placeto.measurement.driver import at_once, one_line

WHERE = "From /job:worker/replica:0/task:1:"
WHAT = "Received a label value of 6 which is outside the valid range of [0, 1)."
RULE = "=" * 21


@pytest.mark.parametrize(
    "message",
    [
        WHAT,
        f"{WHERE}\n{WHAT}\n\t [[{{node loss}}]]",
        f"Graph execution error:\n\nDetected at node loss defined at\n{WHERE}\n{WHAT}",
        # As TensorFlow tells errors that were met together.
        f"\n{RULE}\nINVALID_ARGUMENT: {WHERE}\n{WHAT}\nINTERNAL: other\n{RULE}\n",
        f"2 root error(s) found.\n  (0) INVALID_ARGUMENT: {WHERE}\n{WHAT}\n  (1) INTERNAL: other",
    ],
)
def test_of_an_error_the_line_that_says_what_it_is(message):
    assert one_line(message) == WHAT


def test_what_runs_at_once_goes_on_until_all_have_enough():
    quick, slow = count(), count()

    def waits():
        time.sleep(0.05)
        return next(slow)

    assert at_once([lambda: next(quick), waits], 2, 0.0) == [[1, 1], [2, 2]]
    assert next(quick) > 4


def test_what_runs_at_once_does_not_begin_at_once():
    began, first = time.monotonic(), {}

    def call(number):
        first.setdefault(number, time.monotonic() - began)
        time.sleep(0.01)

    at_once([partial(call, number) for number in range(3)], 1, 0.3)
    assert first[1] > 0.09
    assert first[2] > 0.19


def test_one_that_fails_ends_all():
    calls = count()

    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        at_once([lambda: next(calls), fails], 3, 0.0)
