"""Progress of long work on stderr."""

import contextlib
import sys
import time
from collections.abc import Iterator

from placeto.support.progress import Progress

LINE_INTERVAL_SECONDS = 5.0


@contextlib.contextmanager
def progress(label: str, interval_seconds: float = LINE_INTERVAL_SECONDS) -> Iterator[Progress]:
    """Yields what long work reports its progress to.

    On a terminal the latest report is shown in place and is gone when the work is done. Elsewhere
    reports are lines, the first at once and then one an interval, so that a log stays short.

    Args:
        label: what the work is.
        interval_seconds: least time between two lines where stderr is not a terminal.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status(escape(label)) as status:
            yield lambda message: status.update(escape(f"{label}: {message}"))
        return
    next_line = 0.0

    def report(message: str) -> None:
        nonlocal next_line
        if time.monotonic() >= next_line:
            print(f"{label}: {message}", file=sys.stderr, flush=True)
            next_line = time.monotonic() + interval_seconds

    yield report
