"""Members of a family extracted on many machines, by Ray."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from placeto.extraction.extract import extract
from placeto.extraction.workers import ONE_THREAD
from placeto.support.crew import Crew
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, write_bytes
from placeto.support.ray_session import ray_session
from placeto.zoo.families import Member
from placeto.zoo.folders import graph_path

# What an extraction leaves: the bytes of files, by name; the graph file is the last.
Files = dict[str, bytes]


def extract_members_with_ray(
    members: Sequence[Member],
    folder: Path,
    workers: int,
    made: Callable[[Member], None],
    *,
    address: str | None,
) -> None:
    """Extracts members into a folder; its arguments are those of `workers.extract_members`.

    A worker that dies is replaced, and its member extracted again. Only this process writes to the
    folder.

    Raises:
        PlacetoError: a member cannot be extracted or written, the cluster at `address` cannot be
            reached or is too small, workers die again and again.
    """
    with (
        ray_session(address, workers),
        Crew[Member, Files](extractor, [{"num_cpus": 1}] * workers) as crew,
    ):
        for number, files in crew.map(members):
            for name, content in files.items():
                write_bytes(folder / name, content)
            made(members[number])


def extractor(number: int) -> Callable[[Member], Files]:
    """What extracts members, in a worker that TensorFlow was not imported in yet."""
    os.environ.update(ONE_THREAD)
    return _extracted


def _extracted(member: Member) -> Files:
    with tempfile.TemporaryDirectory() as name:
        path = graph_path(Path(name), member)
        try:
            beside = extract(member.reference).save(path)
            files = [path] if beside is None else [beside, path]
            return {file.name: read_bytes(file) for file in files}
        except PlacetoError as error:
            raise PlacetoError(f"{member.reference}: {error}") from error
