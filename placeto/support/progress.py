"""What long work tells of itself."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Told in a line, now and then, how far the work is."""


def silent(message: str) -> None:
    """Tells nobody."""
