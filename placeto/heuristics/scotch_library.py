"""Static mapping by the Scotch library, through its C interface."""

import contextlib
import io
from ctypes import POINTER, byref
from types import ModuleType
from typing import Any

import numpy as np

from placeto.heuristics.partition import PartitionGraph
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable, PlacetoError

FREE = -1  # the part of a vertex that Scotch is to give one


def scotch_parts(
    graph: PartitionGraph, speeds: Ints, distances: Ints, fixed: Ints, seed: int, imbalance: float
) -> Ints:
    """Maps a graph onto an architecture: little edge weight times distance, balanced work.

    One thread does it: with more, neither the seed nor Scotch's option for deterministic results
    makes two runs the same.

    Args:
        graph: what is mapped.
        speeds: (num_parts,) from 1; a part's share of the vertex weights is that of its speed.
        distances: (num_parts, num_parts) from 1 off the diagonal, symmetric.
        fixed: (num_vertices,) the part that a vertex must be in, -1 for any.
        seed: of Scotch's random numbers.
        imbalance: by what fraction a part may be above its share, where vertices are small.

    Returns:
        (num_vertices,) part of each vertex.

    Raises:
        NotApplicable: pyscotch is not installed, or finds no Scotch.
        PlacetoError: Scotch reports an error.
    """
    scotch = _library()
    parts = np.ascontiguousarray(fixed, dtype=scotch.get_scotch_dtype())
    with contextlib.ExitStack() as made:

        def new(kind: str) -> Any:
            structure = getattr(scotch, f"SCOTCH_{kind.capitalize()}")()
            _check(scotch, getattr(scotch, f"SCOTCH_{kind}Init")(byref(structure)), kind)
            made.callback(getattr(scotch, f"SCOTCH_{kind}Exit"), byref(structure))
            return structure

        context = new("context")
        spawned = scotch.SCOTCH_contextThreadSpawn(byref(context), 1, None)
        _check(scotch, spawned, "contextThreadSpawn")
        scotch.SCOTCH_contextRandomSeed(byref(context), scotch.SCOTCH_Num(seed))
        scotch.SCOTCH_contextRandomReset(byref(context))

        def build(what: PartitionGraph) -> Any:
            arrays = [
                np.ascontiguousarray(column, dtype=scotch.get_scotch_dtype())
                for column in (what.start, what.vertex_weight, what.neighbour, what.edge_weight)
            ]
            made.callback(arrays.clear)  # Scotch reads them where they are
            start, load, neighbour, weight = (_pointer(scotch, column) for column in arrays)
            plain, bound = new("graph"), new("graph")
            numbers = scotch.SCOTCH_Num(what.num_vertices), scotch.SCOTCH_Num(len(what.neighbour))
            built = scotch.SCOTCH_graphBuild(
                byref(plain), scotch.SCOTCH_Num(0), numbers[0], start, None, load, None,
                numbers[1], neighbour, weight,
            )  # fmt: skip
            _check(scotch, built, "graphBuild")
            bind = scotch.SCOTCH_contextBindGraph(byref(context), byref(plain), byref(bound))
            _check(scotch, bind, "contextBindGraph")
            return bound

        architecture, strategy = new("arch"), new("strat")
        machine = build(_complete(speeds, distances))
        # With SCOTCH_archBuild free vertices flee the fixed ones that they should be with (7.0.13).
        found = scotch.SCOTCH_archBuild2(
            byref(architecture), byref(machine), scotch.SCOTCH_Num(0), None
        )
        _check(scotch, found, "archBuild2")
        chosen = scotch.SCOTCH_stratGraphMapBuild(
            byref(strategy), scotch.SCOTCH_Num(0), scotch.SCOTCH_Num(len(speeds)), imbalance
        )
        _check(scotch, chosen, "stratGraphMapBuild")
        mapped = scotch.SCOTCH_graphMapFixed(
            byref(build(graph)), byref(architecture), byref(strategy), _pointer(scotch, parts)
        )
        _check(scotch, mapped, "graphMapFixed")
    return parts.astype(np.int64)


def _library() -> ModuleType:
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it says which library it has loaded
            from pyscotch import libscotch
    except (ImportError, OSError) as error:
        raise NotApplicable(
            f"scotch and mincut need pyscotch ({error}); pip install 'placeto[solvers]'"
        ) from error
    library: ModuleType = libscotch
    return library


def _complete(speeds: Ints, distances: Ints) -> PartitionGraph:
    """The complete graph of an architecture: speeds as vertex weights, distances as edges'."""
    count = len(speeds)
    apart = ~np.eye(count, dtype=bool)
    return PartitionGraph(
        start=np.arange(count + 1) * (count - 1),
        neighbour=np.nonzero(apart)[1],
        edge_weight=distances[apart],
        vertex_weight=speeds,
    )


def _pointer(scotch: ModuleType, column: Any) -> Any:
    return column.ctypes.data_as(POINTER(scotch.SCOTCH_Num))


def _check(scotch: ModuleType, status: int, what: str) -> None:
    if status:
        said = " ".join(scotch.get_scotch_messages().split())
        raise PlacetoError(f"Scotch: {what} failed with {status}: {said}")
