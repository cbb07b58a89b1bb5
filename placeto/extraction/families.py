"""Makes the graphs of a family into a folder: in parallel, and only those that are not there."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from placeto.extraction.workers import extract_members
from placeto.graph import save_graph
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, read_json
from placeto.support.progress import Progress, silent
from placeto.zoo.families import SCHEME, Member, is_synthetic, members
from placeto.zoo.folders import INDEX, family_of, graph_path, synthetic_member, write_index

ExtractAll = Callable[[Sequence[Member], Path, int, Callable[[Member], None]], None]


def make_family(
    family: str,
    folder: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    extract_all: ExtractAll | None = None,
) -> int:
    """Makes those graphs of a family that a folder does not hold yet, and the folder's index.

    Each graph is NAME.json.gz with its GraphDef beside it, as `Extraction.save` writes them; what
    is there is whole, whenever the work is interrupted.

    Args:
        family: its name.
        folder: made if it is not there.
        workers: processes that extract at the same time, of one thread each; by default as many as
            this process may use cores.
        progress: called with a line for each graph that is made.
        extract_all: what extracts many members; default: `workers.extract_members`.

    Returns:
        How many graphs were made.

    Raises:
        PlacetoError: an unknown family, a folder that cannot be used or is another family's,
            a worker that failed.
    """
    say = progress or silent
    if workers is None:
        workers = len(os.sched_getaffinity(0))
    if workers < 1:
        raise PlacetoError(f"--workers {workers}: expected at least 1")
    graphs = members(family)
    _prepare(folder, family)
    missing = [member for member in graphs if not is_whole(member, folder)]
    indexed = (folder / INDEX).exists()
    for path in (graph_path(folder, member) for member in missing):
        if path.exists() and not indexed:
            raise PlacetoError(
                f"{path}: was not made by this command, and would be lost; "
                f"give {SCHEME}{family} a folder of its own"
            )
        # What an earlier placeto made under this name is not what the index will say.
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise PlacetoError(f"{path}: cannot be replaced: {error.strerror}") from error
    write_index(folder, family)
    done = len(graphs) - len(missing)

    def made(member: Member) -> None:
        nonlocal done
        done += 1
        say(f"{done} of {len(graphs)}: {member.name}")

    if done:
        say(f"{done} of {len(graphs)} are there")
    if is_synthetic(family):
        for member in missing:
            save_graph(synthetic_member(member), graph_path(folder, member))
            made(member)
    elif missing:
        (extract_all or extract_members)(missing, folder, min(workers, len(missing)), made)
    return len(missing)


def is_whole(member: Member, folder: Path) -> bool:
    """Whether a folder holds a member's graph, made from its source, with its GraphDef."""
    path = graph_path(folder, member)
    try:
        meta = read_json(path).get("meta", {})
        if meta["source"] != member.source:
            return False
        if is_synthetic(member.family):
            return True
        data = read_bytes(folder / meta["run"]["graph_def"])
        return bool(hashlib.sha256(data).hexdigest() == meta["run"]["sha256"])
    except (PlacetoError, KeyError, TypeError):
        return False


def _prepare(folder: Path, family: str) -> None:
    if folder.exists() and not folder.is_dir():
        raise PlacetoError(f"{folder}: is a file; expected a folder for {SCHEME}{family}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlacetoError(f"{folder}: cannot be made: {error.strerror}") from error
    if (folder / INDEX).exists() and (held := family_of(folder)) != family:
        raise PlacetoError(
            f"{folder}: holds the graphs of {SCHEME}{held}; give {SCHEME}{family} its own"
        )
