"""Groups of results that are kept: as many as wanted, by the papers' rules."""

from placeto.graph import ComputationGraph
from placeto.grouping import coarsen, colocation_groups
from placeto.support.arrays import Ints


def by_rules(graph: ComputationGraph, max_groups: int) -> Ints:
    """(num_ops,) groups as `papers` makes them, but at most `max_groups`."""
    return coarsen(graph, colocation_groups(graph), max_groups)
