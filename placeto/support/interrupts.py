"""Ctrl-C where compiled code is loaded."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts() -> Iterator[None]:
    """Makes Ctrl-C what it was: where numba loads a compiled function, it raises a SystemError."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise KeyboardInterrupt from error
