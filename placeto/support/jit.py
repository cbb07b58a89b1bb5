"""Compiled functions on disk: numba keeps them, and must not keep them too long.

Files with compiled functions take `njit` from here, so that none is loaded before those that are
out of date are gone.
"""

import contextlib
from pathlib import Path

from numba import njit

__all__ = ["drop_stale_kernels", "njit"]

PACKAGE = Path(__file__).parents[1]
TELLING = ("njit", "NamedTuple")  # of the code that kernels are made of


def drop_stale_kernels(package: Path = PACKAGE) -> None:
    """Removes what numba compiled if any file that it was compiled from is another now.

    numba notices when the file of a function changes, not when that of a function it calls does, or
    of a tuple that it reads: after an update, old and new code would work on the same arrays.

    Args:
        package: folder of the files.
    """
    stamp = "\n".join(
        f"{file} {(s := file.stat()).st_mtime_ns} {s.st_size}"
        for file in sorted(package.rglob("*.py"))
        if any(word in file.read_text() for word in TELLING)
    )
    mark = package / "__pycache__" / "kernels.stamp"
    # Where nothing can be written, numba keeps nothing either, but elsewhere and by version.
    with contextlib.suppress(OSError):
        if mark.exists() and mark.read_text() == stamp:
            return
        mark.parent.mkdir(exist_ok=True)
        for compiled in package.rglob("__pycache__/*.nb[ci]"):
            compiled.unlink(missing_ok=True)
        mark.write_text(stamp)


drop_stale_kernels()
