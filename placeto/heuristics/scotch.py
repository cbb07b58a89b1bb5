"""Static mapping by the Scotch library, onto all devices or onto all but the CPUs."""

import contextlib
import io
from ctypes import POINTER, byref
from types import ModuleType
from typing import Any

import numpy as np

from placeto.heuristics.costs import device_speeds, links, moved_where_allowed
from placeto.heuristics.partition import PartitionGraph, partition_graph
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import NotApplicable, PlacetoError

IMBALANCE = 0.01  # of a part above its share, where vertices are small: Scotch's own
SPEED_OF_FASTEST = 1000
SHORTEST_DISTANCE = 100
MAX_RATIO = 100  # of the longest distance to the shortest
MAX_SEED = 2**31 - 1
FREE = -1  # the part of a vertex that Scotch is to give one


def mapped_everywhere(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(num_groups,) Scotch's static mapping onto all devices of the cluster, the CPUs among them.

    A baseline of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972, section 4.1); Scotch by
    Pellegrini & Roman (1996, "Scotch: a software package for static mapping by dual recursive
    bipartitioning of process and architecture graphs"). See `mapped`.
    """
    return mapped(problem, np.arange(problem.num_devices), int(rng.integers(MAX_SEED)))


def mapped_without_cpus(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(num_groups,) the same as `mapped_everywhere` without the CPUs, as in ColocRL.

    Only groups that may be nowhere else are on a CPU. On a cluster without a CPU the two are the
    same; where all devices are CPUs it is `NotApplicable`.
    """
    devices = np.flatnonzero([device.kind != "cpu" for device in problem.cluster.devices])
    if not len(devices):
        raise NotApplicable(
            f"cluster {problem.cluster.name!r} has no device but those of kind cpu; "
            "method mincut needs another"
        )
    return mapped(problem, devices, int(rng.integers(MAX_SEED)))


def mapped(problem: PlacementProblem, devices: Ints, seed: int) -> Ints:
    """(num_groups,) devices by Scotch, some of the cluster's, given by (n,) rising numbers.

    Vertices and edges are weighted as by `partition_graph`. The architecture is a complete graph
    of the devices (a `deco 2` of Scotch). A device's weight is its speed, of which its share of the
    work follows: 1000 for the fastest, at least 1. The distance of two devices is the seconds that
    the mean edge's bytes take between them, the mean of both directions: 100 for the shortest, and
    for all below a hundredth of the longest. Both are rounded to whole numbers. Groups that only
    one of the devices can take are fixed there; those that some can take and Scotch puts elsewhere
    move afterwards (see `moved_where_allowed`); those that none can take are on other devices.
    Scotch knows no limits of memory.

    Raises:
        NotApplicable: pyscotch is not installed.
    """
    graph, groups = partition_graph(problem, devices)
    placed = problem.allowed.argmax(axis=1)
    if len(devices) == 1 or not len(groups):
        placed[groups] = devices[0]
        return placed
    allowed = problem.allowed[np.ix_(groups, devices)]
    fixed = np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), FREE)
    machine = _architecture(problem, devices)
    placed[groups] = devices[scotch_parts(graph, machine, fixed, seed)]
    return moved_where_allowed(problem, placed)


def scotch_parts(graph: PartitionGraph, machine: PartitionGraph, fixed: Ints, seed: int) -> Ints:
    """(num_vertices,) parts of a graph on an architecture: little weight times distance, balanced.

    One thread maps it: with more, neither the seed nor Scotch's option for deterministic results
    makes two runs the same.

    Args:
        graph: what is mapped.
        machine: the architecture. A part's share of the graph's vertex weights is that of its own
            in the machine's; edge weights are distances.
        fixed: (num_vertices,) the part that a vertex must be in, -1 for any.
        seed: of Scotch's random numbers.

    Raises:
        NotApplicable: pyscotch is not installed, or finds no Scotch.
        PlacetoError: Scotch reports an error.
    """
    scotch = _library()
    number = scotch.SCOTCH_Num
    parts = np.ascontiguousarray(fixed, dtype=scotch.get_scotch_dtype())
    with contextlib.ExitStack() as made:

        def call(name: str, *arguments: Any) -> None:
            if status := getattr(scotch, f"SCOTCH_{name}")(*arguments):
                said = " ".join(scotch.get_scotch_messages().split())
                raise PlacetoError(f"Scotch: {name} failed with {status}: {said}")

        def new(kind: str) -> Any:
            structure = byref(getattr(scotch, f"SCOTCH_{kind.capitalize()}")())
            call(f"{kind}Init", structure)
            made.callback(getattr(scotch, f"SCOTCH_{kind}Exit"), structure)
            return structure

        context = new("context")
        call("contextThreadSpawn", context, 1, None)
        scotch.SCOTCH_contextRandomSeed(context, number(seed))
        scotch.SCOTCH_contextRandomReset(context)

        def build(what: PartitionGraph) -> Any:
            arrays = [
                np.ascontiguousarray(column, dtype=scotch.get_scotch_dtype())
                for column in (what.start, what.vertex_weight, what.neighbour, what.edge_weight)
            ]
            made.callback(arrays.clear)  # Scotch reads them where they are
            start, load, neighbour, weight = (_pointer(scotch, column) for column in arrays)
            plain, bound = new("graph"), new("graph")
            call(
                "graphBuild", plain, number(0), number(len(what.vertex_weight)), start, None, load,
                None, number(len(what.neighbour)), neighbour, weight,
            )  # fmt: skip
            call("contextBindGraph", context, plain, bound)
            return bound

        architecture, strategy = new("arch"), new("strat")
        # With SCOTCH_archBuild free vertices flee the fixed ones that they should be with (7.0.13).
        call("archBuild2", architecture, build(machine), number(0), None)
        counted = number(len(machine.vertex_weight))
        call("stratGraphMapBuild", strategy, number(0), counted, IMBALANCE)
        call("graphMapFixed", build(graph), architecture, strategy, _pointer(scotch, parts))
    return parts.astype(np.int64)


def _library() -> ModuleType:
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it says which library it has loaded
            from pyscotch import libscotch
    except (ImportError, OSError) as error:
        raise NotApplicable(
            f"scotch and mincut need pyscotch ({error}); pip install 'placeto[solvers]'"
        ) from error
    return libscotch


def _pointer(scotch: ModuleType, column: Any) -> Any:
    return column.ctypes.data_as(POINTER(scotch.SCOTCH_Num))


def _architecture(problem: PlacementProblem, devices: Ints) -> PartitionGraph:
    """The complete graph of the devices: speeds as vertex weights, distances as edges'."""
    count, sizes = len(devices), problem.group_edges[2]
    startup, pace = links(problem)
    seconds = startup + pace * (sizes.mean() if len(sizes) else 0.0)
    seconds = (seconds + seconds.T)[np.ix_(devices, devices)]
    apart = ~np.eye(count, dtype=bool)
    unit = max(seconds[apart].min(), seconds.max() / MAX_RATIO) or 1.0
    distances = np.maximum(np.rint(seconds / unit * SHORTEST_DISTANCE), SHORTEST_DISTANCE)
    speeds = np.maximum(np.rint(device_speeds(problem, devices) * SPEED_OF_FASTEST), 1)
    return PartitionGraph(
        start=np.arange(count + 1) * (count - 1),
        neighbour=np.nonzero(apart)[1],
        edge_weight=distances[apart].astype(np.int64),
        vertex_weight=speeds.astype(np.int64),
    )
