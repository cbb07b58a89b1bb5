"""What is written to stdout and stderr, by libraries in C, too."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def redirected(descriptor: int, to: int | None = None) -> Iterator[None]:
    """Sends what is written to a file descriptor elsewhere while the block lasts.

    Args:
        descriptor: 1 for stdout, 2 for stderr.
        to: another descriptor; None for nowhere.
    """
    stream = sys.stdout if descriptor == 1 else sys.stderr
    flush_c = ctypes.CDLL(None).fflush
    stream.flush()
    flush_c(None)
    saved = os.dup(descriptor)
    sink = os.open(os.devnull, os.O_WRONLY) if to is None else os.dup(to)
    try:
        os.dup2(sink, descriptor)
        yield
    finally:
        flush_c(None)
        os.dup2(saved, descriptor)
        os.close(saved)
        os.close(sink)
