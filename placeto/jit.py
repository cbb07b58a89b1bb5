"""Compiled functions on disk: numba keeps them, and must not keep them too long."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


def drop_stale_kernels(folder: Path, *called: str) -> None:
    """Removes what numba compiled from other versions of a folder's files, or of what they call.

    numba notices when the file of a function changes, not when that of a function it calls does:
    after an update, old and new code would work on the same arrays.

    Args:
        folder: of a package whose compiled functions call each other across its files.
        called: rooms of the package, such as `simulation`, whose compiled functions these call,
            too.
    """
    rooms = [Path(__file__).parent / room for room in called]
    files = [file for place in (folder, *rooms) for file in sorted(place.glob("*.py"))]
    stamp = "\n".join(f"{f} {(s := f.stat()).st_mtime_ns} {s.st_size}" for f in files)
    cache = folder / "__pycache__"
    mark = cache / "kernels.stamp"
    # Where nothing can be written, numba keeps nothing either, but elsewhere and by version.
    with contextlib.suppress(OSError):
        if mark.exists() and mark.read_text() == stamp:
            return
        cache.mkdir(exist_ok=True)
        for compiled in cache.glob("*.nb[ci]"):
            compiled.unlink(missing_ok=True)
        mark.write_text(stamp)


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
