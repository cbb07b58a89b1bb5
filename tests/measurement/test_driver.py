"""What the driver says of an error."""

import pytest

from placeto.measurement.driver import one_line

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
