"""Finding what ships with the package: graphs, cluster presets, policies."""

import os.path
from pathlib import Path

from placeto.support.errors import PlacetoError

DATA = Path(__file__).parents[1] / "data"
FOLDERS = {
    "graphs": DATA / "graphs",
    "clusters": DATA.parent / "presets",
    "policies": DATA / "policies",
}


def names(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """The bundled names in `folder`, sorted."""
    found = (
        path.name.removesuffix(suffix)
        for suffix in suffixes
        for path in FOLDERS[folder].glob(f"*{suffix}")
    )
    return sorted(found)


def find(folder: str, suffixes: tuple[str, ...], source: str | Path) -> Path:
    """The file of a bundled name, or `source` itself if it is a file.

    Args:
        folder: a key of `FOLDERS`.
        suffixes: endings that a bundled file of that folder may have.
        source: a bundled name or a path.

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
    known = names(folder, suffixes)
    raise PlacetoError(
        f"{source}: no such file, and no bundled name; bundled {folder}: {', '.join(known)}"
    )
