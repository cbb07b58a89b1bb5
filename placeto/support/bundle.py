"""Finding what ships with the package: graphs, cluster presets, policies."""

import os.path
from pathlib import Path

from placeto.support.errors import PlacetoError

DATA = Path(__file__).parents[1] / "data"
PRESETS = DATA.parent / "presets"
FOLDERS = {"graphs": DATA / "graphs", "clusters": PRESETS, "policies": DATA / "policies"}


def names(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """The bundled names in a folder of `FOLDERS`, sorted."""
    files = ((path, end) for end in suffixes for path in FOLDERS[folder].glob(f"*{end}"))
    return sorted(path.name.removesuffix(end) for path, end in files)


def find(folder: str, suffixes: tuple[str, ...], source: str | Path) -> Path:
    """The file of a bundled name in a folder of `FOLDERS`, or `source` itself if it is a file.

    Raises:
        PlacetoError: neither a bundled name nor a file.
    """
    path = Path(source)
    if os.path.isfile(path):  # unlike Path.is_file, False for a name that no file can have
        return path
    for suffix in suffixes:
        bundled = FOLDERS[folder] / f"{source}{suffix}"
        if path.name == str(source) and os.path.isfile(bundled):
            return bundled
    known = ", ".join(names(folder, suffixes))
    raise PlacetoError(f"{source}: no such file, and no bundled name; bundled {folder}: {known}")
