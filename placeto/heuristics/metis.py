"""Partitioning by METIS."""

import numpy as np

from placeto.heuristics.costs import device_speeds, moved_where_allowed
from placeto.heuristics.partition import PartitionGraph, partition_graph
from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import NotApplicable
from placeto.support.streams import redirected

IMBALANCE = 0.03
MAX_SEED = 2**31 - 1


def partitioned(problem: PlacementProblem, rng: np.random.Generator) -> Ints:
    """(num_groups,) a part for each device: few bytes between parts, each with its share of work.

    METIS by Karypis & Kumar (1998, "A fast and high quality multilevel scheme for partitioning
    irregular graphs"). Weights are those of `partition_graph`; a device's share is that of its
    speed in the sum of all speeds (`device_speeds`), at most 3% more where vertices are small.
    METIS knows neither pins nor memory: groups that are then where they may not be move (see
    `moved_where_allowed`).

    Raises:
        NotApplicable: see `metis_parts`.
    """
    devices = np.arange(problem.num_devices)
    graph, _ = partition_graph(problem, devices)
    speeds = device_speeds(problem, devices)
    parts, _ = metis_parts(graph, speeds / speeds.sum(), int(rng.integers(MAX_SEED)))
    return moved_where_allowed(problem, parts)


def metis_parts(graph: PartitionGraph, shares: Floats, seed: int) -> tuple[Ints, int]:
    """Cuts a graph into parts, of (num_parts,) shares in the weight of all vertices.

    Returns:
        (num_vertices,) part of each vertex, and the weight of the edges cut as METIS counts it.

    Raises:
        NotApplicable: pymetis is not installed, or METIS fails, as it does where one share is next
            to nothing.
    """
    try:
        import pymetis
    except ImportError as error:
        needed = f"metis needs pymetis ({error}); pip install 'placeto[solvers]'"
        raise NotApplicable(needed) from error
    try:
        # METIS prints to the file descriptor where a vertex outweighs the share of its part.
        with redirected(1):
            cut, parts = pymetis.part_graph(
                len(shares),
                pymetis.CSRAdjacency(graph.start, graph.neighbour),
                vweights=graph.vertex_weight,
                eweights=graph.edge_weight,
                tpwgts=shares.tolist(),
                options=pymetis.Options(seed=seed, ufactor=round(IMBALANCE * 1000)),
            )
    except RuntimeError as error:
        raise NotApplicable(
            f"METIS cannot make parts of {shares.min():.2g} to {shares.max():.2g} of this: {error}"
        ) from error
    return np.array(parts, dtype=np.int64), cut
