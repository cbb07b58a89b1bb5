"""The groups that a user asks for: by a rule, by their number, or op by op."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from placeto.graph import ComputationGraph
from placeto.grouping.colocation import colocation_groups, required_groups
from placeto.grouping.contraction import coarsen
from placeto.grouping.disjoint_sets import equal_keys
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

Grouping = Literal["auto", "papers", "none"] | int | ArrayLike

AUTO_MAX_GROUPS = 800
PAPERS_MAX_GROUPS = 280  # as the largest of Mirhoseini et al. 2017


def group_ops(graph: ComputationGraph, grouping: Grouping) -> Ints:
    """Gives every op its group.

    Args:
        graph: the ops.
        grouping: `"none"` (only ops that must share a device do), `"auto"` (the same, coarsened to
            at most 800 groups: a gradient need not be where its forward op is), a number N (the
            same, coarsened to at most N), `"papers"` (the co-location rules of ColocRL, then
            coarsened to at most 280), or a (num_ops,) array of groups.

    Returns:
        (num_ops,) groups from 0 without gaps, numbered by their first op; an array keeps its own
        numbers.

    Raises:
        PlacetoError: an unknown grouping, an array of the wrong shape or with gaps, or one that
            parts ops that must share a device.
    """
    if isinstance(grouping, str):
        if grouping == "auto":
            return coarsen(graph, required_groups(graph), AUTO_MAX_GROUPS)
        if grouping == "papers":
            return coarsen(graph, colocation_groups(graph), PAPERS_MAX_GROUPS)
        if grouping == "none":
            return required_groups(graph)
        raise PlacetoError(
            f"grouping is {grouping!r}, expected auto, papers, none, or a number of groups"
        )
    try:
        array = np.asarray(grouping)
    except ValueError as error:
        raise PlacetoError("grouping is not an array of groups, one an op") from error
    if array.ndim == 0:
        if not np.issubdtype(array.dtype, np.integer) or array < 1:
            raise PlacetoError(f"grouping is {grouping!r}, expected at least 1 group")
        return coarsen(graph, required_groups(graph), int(array))
    return _checked(graph, array)


def _checked(graph: ComputationGraph, op_group: Ints) -> Ints:
    if op_group.shape != (graph.num_ops,) or not np.issubdtype(op_group.dtype, np.integer):
        raise PlacetoError(
            f"grouping has shape {op_group.shape} of {op_group.dtype}, "
            f"expected ({graph.num_ops},) whole numbers: one group an op"
        )
    if op_group.min() < 0:
        op = int(np.argmin(op_group))
        raise PlacetoError(f"grouping[{op}] is {op_group[op]}, groups are numbered from 0")
    if op_group.max() >= graph.num_ops:
        op = int(np.argmax(op_group))
        raise PlacetoError(
            f"grouping[{op}] is {op_group[op]}, but {graph.num_ops} ops make at most as many groups"
        )
    op_group = op_group.astype(np.int64)
    missing = np.flatnonzero(np.bincount(op_group) == 0)
    if len(missing):
        raise PlacetoError(
            f"grouping has no op in group {missing[0]}, though groups go up to {op_group.max()}"
        )
    ops, first = equal_keys(graph.colocation)
    parted = np.flatnonzero(op_group[ops] != op_group[first])
    if len(parted):
        op, other = int(ops[parted[0]]), int(first[parted[0]])
        raise PlacetoError(
            f"grouping parts {graph.op_names[other]!r} (group {op_group[other]}) from "
            f"{graph.op_names[op]!r} (group {op_group[op]}), which colocation key "
            f"{graph.colocation[op]} keeps on one device"
        )
    op_group.flags.writeable = False
    return op_group
