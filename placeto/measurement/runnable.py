"""The TensorFlow graph behind a computation graph."""

import contextlib
import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from placeto.graph import ComputationGraph
from placeto.measurement.child import child_environment
from placeto.support.bundle import FOLDERS
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes, user_cache


@dataclass(frozen=True)
class Runnable:
    """A training step that TensorFlow can run."""

    path: Path  # its GraphDef, serialized, maybe gzip-compressed
    sha256: str  # of the GraphDef before compression
    fetches: tuple[str, ...]  # tensors that the step computes, as `op:port`
    targets: tuple[str, ...]  # ops that must run besides
    initializer: str  # the op that sets all variables


def find_runnable(graph: ComputationGraph) -> Runnable:
    """The GraphDef of a graph: beside its file, bundled, or extracted again from its source.

    How to run it is said by its `meta["run"]`, as extraction wrote it.

    Raises:
        PlacetoError: the graph was not extracted and saved, its GraphDef is of another, or its
            source does not give the same GraphDef any more.
    """
    where = f"graph {graph.name!r}"
    run = graph.meta.get("run")
    if not isinstance(run, dict) or not isinstance(run.get("sha256"), str):
        raise PlacetoError(
            f"{where}: cannot be run: its file does not say which GraphDef it is of; make it with "
            "placeto extract of a TensorFlow model"
        )
    try:
        sha256 = run["sha256"]
        parts = tuple(run["fetches"]), tuple(run["targets"]), str(run["initializer"])
    except (KeyError, TypeError) as error:
        raise PlacetoError(f"{where}: meta.run has no usable {error}") from error
    name = run.get("graph_def")
    if isinstance(name, str) and Path(name).name == name:
        if graph.folder is not None and (beside := graph.folder / name).is_file():
            if _digest(beside) != sha256:
                raise PlacetoError(f"{beside}: is not the GraphDef that {where} was made of")
            return Runnable(beside, sha256, *parts)
        bundled = FOLDERS["graphs"] / name
        if bundled.is_file() and _digest(bundled) == sha256:
            return Runnable(bundled, sha256, *parts)
    kept = user_cache() / "graph_defs" / f"{sha256}.graphdef.gz"
    with contextlib.suppress(PlacetoError):  # missing, or damaged: made again
        if _digest(kept) == sha256:
            return Runnable(kept, sha256, *parts)
    _make_again(graph, sha256, kept)
    return Runnable(kept, sha256, *parts)


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _make_again(graph: ComputationGraph, sha256: str, path: Path) -> None:
    # In a process of its own: the caller's would keep TensorFlow's memory and threads.
    source = graph.meta.get("source")
    if not isinstance(source, str):
        raise PlacetoError(
            f"graph {graph.name!r}: its GraphDef is not beside it, and it names no source"
        )
    optimize = "1" if graph.meta.get("optimized", True) else "0"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlacetoError(
            f"{path.parent}: cannot be made: {error.strerror}; set PLACETO_CACHE to a folder that "
            "can be written to"
        ) from error
    done = subprocess.run(
        [sys.executable, "-m", "placeto.measurement.remake", source, optimize, sha256, path],
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise PlacetoError(f"graph {graph.name!r}: its GraphDef cannot be made again: {lines[-1]}")
