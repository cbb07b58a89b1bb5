"""The exception for input that cannot be used, and for a method that cannot be."""


class PlacetoError(ValueError):
    """Bad input, in one line: what is wrong, where, and what would be right.

    The command line prints the message and exits with status 2.
    """

    def __init__(self, message: str) -> None:
        # Names out of a user's file may hold line breaks.
        super().__init__(" ".join(message.splitlines()))


class NotApplicable(PlacetoError):  # noqa: N818 (no fault of the input: another method is needed)
    """A method cannot do anything with this problem, whatever its budget."""
