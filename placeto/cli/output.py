"""What commands print and write, and how they tell of long work."""

import contextlib
import io
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeto.support.errors import PlacetoError
from placeto.support.files import write_json
from placeto.support.progress import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType


def note(message: str) -> None:
    """One line for the person, on stderr."""
    print(f"placeto: {message}", file=sys.stderr)


def print_json(document: Any) -> None:
    """One JSON document on stdout; numbers that are not finite become null."""
    write(json.dumps(finite(document), allow_nan=False) + "\n")


def print_rich(*renderables: "RenderableType") -> None:
    """Tables on stdout: coloured on a terminal, plain where it is a file or a pipe."""
    from rich.console import Console  # `placeto --help` does without

    parts = []
    for renderable in renderables:
        page = _Page()
        Console(file=page, highlight=False, markup=False, emoji=False).print(renderable)
        lines = (line.rstrip() for line in page.getvalue().splitlines())
        parts.append("\n".join(lines).strip("\n"))
    write("\n\n".join(parts) + "\n")


def print_result(
    as_json: bool, document: Any, tables: Sequence["RenderableType"], file: str | None = None
) -> None:
    """What a command found: one JSON document, also in a file if asked for; or tables, if any."""
    if file is not None:
        write_json(file, finite(document))
    if as_json:
        print_json(document)
    elif tables:
        print_rich(*tables)
    if file is not None:
        note(f"the rows are in {file}")


def finite(document: Any) -> Any:
    """The document with null for every number that is infinite or NaN, which JSON cannot say."""
    if isinstance(document, dict):
        return {key: finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [finite(value) for value in document]
    if isinstance(document, float) and not math.isfinite(document):
        return None
    return document


def check_outputs(*outputs: str | None, inputs: tuple[str | None, ...] = ()) -> None:
    """Makes sure, before long work starts, that files can be written when it ends.

    `inputs` are the paths or bundled names that are read; None stands for what is not asked for.

    Raises:
        PlacetoError: a folder is missing or cannot be written to, a path is not that of an
            ordinary file, or two paths are the same.
    """
    taken = {Path(source).resolve() for source in inputs if source is not None}
    for output in outputs:
        if output is None:
            continue
        path = Path(output)
        if path.resolve() in taken:
            raise PlacetoError(f"{output}: would be overwritten; give every file its own name")
        taken.add(path.resolve())
        try:
            if path.exists() and not path.is_file():
                raise PlacetoError(f"{output}: cannot be written: not an ordinary file")
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise PlacetoError(f"{output}: cannot be written: {error.strerror}") from error


class _Page(io.StringIO):
    """Text that looks to rich like stdout, so that only `write` meets its errors."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return sys.stdout.encoding or "utf-8"

    def isatty(self) -> bool:
        return sys.stdout.isatty()


def write(text: str = "") -> None:
    """Text on stdout, all of it before this returns.

    Raises:
        PlacetoError: it cannot be written, unless because nobody reads it.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon()
        reason = os.strerror(error.errno or 0)
        raise PlacetoError(f"standard output: cannot be written: {reason}") from error


def abandon() -> None:
    """Drops what stdout still holds: the interpreter would write it when it ends, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def progress(label: str, interval_seconds: float = 5.0) -> Iterator[Progress]:
    """Yields what long work reports its progress to.

    On a terminal the latest report is shown in place and is gone when the work is done. Elsewhere
    reports are lines, the first at once and then one an interval, so that a log stays short.
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
