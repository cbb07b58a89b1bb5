"""Folders that hold the graphs of a family: where they are, what is in them."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from placeto.graph import ComputationGraph, load_graph
from placeto.support import bundle
from placeto.support.documents import check_format
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json, user_cache, write_json
from placeto.zoo.families import SCHEME, SPLITS, Member, is_synthetic, members, parse_family
from placeto.zoo.synthetic import synthetic_graph

INDEX = "family.json"
FORMAT = "placeto.family"
VERSION = 1


def cache_folder(family: str) -> Path:
    """Where a family's graphs are kept unless another folder is named."""
    return user_cache() / "families" / family


def graph_path(folder: Path, member: Member) -> Path:
    """The file of a member in a folder."""
    return folder / f"{member.name}.json.gz"


def write_index(folder: Path, family: str) -> None:
    """Writes which graphs a folder is for: their names, files, splits and sources.

    Raises:
        PlacetoError: it cannot be written.
    """
    document = {"format": FORMAT, "version": VERSION, "family": family, "members": _rows(family)}
    write_json(folder / INDEX, document)


def resolve(source: str | Path, split: str | None = None) -> list[Path]:
    """The graph files of a family, by number.

    Args:
        source: `family:NAME`, which stands for its cache folder, or a folder that
            `placeto extract family:NAME -o DIR` made.
        split: `train`, `validation` or `test`; None for all.

    Raises:
        PlacetoError: an unknown family or split, not such a folder, or some graphs of the split
            are not there: the line says which command makes them.
    """
    if is_reference(source):
        family = parse_family(str(source))
        folder, output = cache_folder(family), ""
    else:
        folder = Path(source)
        family, output = family_of(folder), f" -o {source}"
    paths = [graph_path(folder, member) for member in _chosen(family, split)]
    # Files of other members may be left from an earlier placeto, that split them otherwise.
    current = (folder / INDEX).is_file() and _index(folder)["members"] == _rows(family)
    if missing := sum(not (current and path.is_file()) for path in paths):
        raise PlacetoError(
            f"{source}: {missing} of {len(paths)} graphs are not in {folder}; make them by: "
            f"placeto extract {SCHEME}{family}{output}"
        )
    return paths


def family_of(folder: Path) -> str:
    """The family whose graphs a folder is for.

    Raises:
        PlacetoError: there is no index, or it is none.
    """
    if not (folder / INDEX).is_file():
        raise PlacetoError(
            f"{folder}: holds no {INDEX}; give {SCHEME}NAME, or a folder that "
            f"`placeto extract {SCHEME}NAME -o DIR` made"
        )
    family = str(_index(folder)["family"])
    members(family)
    return family


def family_graphs(source: str | Path, split: str | None = None) -> list[ComputationGraph]:
    """The graphs of a family, by number; those of a synthetic family need no files.

    Source and split are those of `resolve`.

    Raises:
        PlacetoError: see `resolve`; a file is no graph file.
    """
    if is_reference(source) and is_synthetic(family := parse_family(str(source))):
        return [synthetic_member(member) for member in _chosen(family, split)]
    return [load_graph(path) for path in resolve(source, split)]


def load_graphs(sources: Iterable[str], split: str | None = None) -> list[ComputationGraph]:
    """Graphs of families, bundled graphs and graph files, in order, none twice.

    Args:
        sources: families as `family_graphs` takes them, names and paths as `load_graph` does.
        split: which graphs of the families; None for all.

    Raises:
        PlacetoError: see `family_graphs` and `load_graph`.
    """
    graphs: list[ComputationGraph] = []
    for source in dict.fromkeys(sources):
        graphs += family_graphs(source, split) if is_family(source) else [load_graph(source)]
    return graphs


def is_family(source: str) -> bool:
    """Whether a source stands for several graphs: a bundled graph comes before a folder."""
    return is_reference(source) or (
        os.path.isdir(source) and source not in bundle.names("graphs", (".json.gz", ".json"))
    )


def is_reference(source: str | Path) -> bool:
    """Whether a source is a family or one of its graphs by name, not a folder."""
    return str(source).startswith(SCHEME)


def synthetic_member(member: Member) -> ComputationGraph:
    """The graph of a member of a synthetic family."""
    graph = synthetic_graph(member.family, member.number, member.name)
    return replace(graph, meta={**graph.meta, **member_meta(member)})


def member_meta(member: Member) -> dict[str, Any]:
    """What the `meta` of a member's graph says of it."""
    row = {"name": member.family, "number": member.number, "split": member.split}
    return {"source": member.source, "family": row}


def _chosen(family: str, split: str | None) -> list[Member]:
    if split is not None and split not in SPLITS:
        raise PlacetoError(f"there is no split {split!r}; splits: {', '.join(SPLITS)}")
    return [member for member in members(family) if split in (None, member.split)]


def _index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    document = read_json(path)
    check_format(document, FORMAT, VERSION, str(path))
    for key in ("family", "members"):
        if key not in document:
            raise PlacetoError(f"{path}: {key!r} is missing")
    return document


def _rows(family: str) -> list[dict[str, Any]]:
    return [
        {
            "number": member.number,
            "name": member.name,
            "file": graph_path(Path(), member).name,
            "split": member.split,
            "source": member.source,
        }
        for member in members(family)
    ]
