"""Ops to groups: coarsened freely, or by co-location rules first."""

from placeto.grouping.colocation import colocation_groups
from placeto.grouping.contraction import coarsen
from placeto.grouping.groups import AUTO_MAX_GROUPS, PAPERS_MAX_GROUPS, Grouping, group_ops

__all__ = [
    "AUTO_MAX_GROUPS",
    "PAPERS_MAX_GROUPS",
    "Grouping",
    "coarsen",
    "colocation_groups",
    "group_ops",
]
