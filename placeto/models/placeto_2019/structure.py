"""What of a problem a policy reads besides the node features."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from placeto.problem import MAX_GROUPS_IN_PAIRS, PlacementProblem
from placeto.support.arrays import Bools, Ints
from placeto.support.dags import ancestors, compressed, directed, levels, topological_order
from placeto.support.errors import PlacetoError

DIRECTIONS = 2


class Links(NamedTuple):
    """Who hears whom: hearers in rows, each with the senders whose mean it hears."""

    senders: Tensor  # (num_links,) their numbers, those of one hearer together
    first: Tensor  # (num_hearers,) where those of each hearer begin
    weights: Tensor  # (num_links,) 1 over the number of its hearer's senders


class Level(NamedTuple):
    """Groups whose longest path from a source, in one direction, has the same length."""

    groups: Tensor  # (n,) their numbers
    links: Links  # n hearers; the senders are groups of earlier levels


class Structure(NamedTuple):
    """A problem's group graph as the policy reads it.

    Group v is numbered v where messages pass from parents to children, and num_groups + v where
    they pass from children to parents: both directions are one graph of two parts.

    Attributes:
        links: of all groups, in both directions, along `problem.dag_edges`.
        heard: (2, num_groups, 1, 1) 1 where some edge leads to the group, else 0.
        levels: of each direction, from the second level on.
        relatives: (3, num_groups, num_groups) whether the column is an ancestor of the row, a
            descendant, or parallel to it.
    """

    links: Links
    heard: Tensor
    levels: tuple[tuple[Level, ...], ...]
    relatives: Tensor


def structure(problem: PlacementProblem) -> Structure:
    """Reads a problem's group graph."""
    return _structure(problem.num_groups, *problem.dag_edges, problem.ancestors)


def structure_of_edges(num_groups: int, source: Ints, target: Ints) -> Structure:
    """Reads a group graph of which only the edges are known, as in an observation.

    Without cycles it is the `structure` of the problem. With cycles, edges are turned to point from
    lower to higher numbers, and it is the same if groups are numbered by their first ops (as by
    every grouping but one given as an array) and the graph lists its ops in topological order.

    Args:
        num_groups: how many groups there are.
        source: (num_edges,) tail of each edge.
        target: (num_edges,) head of each edge.

    Raises:
        PlacetoError: there are too many groups for a matrix of all pairs.
    """
    if num_groups > MAX_GROUPS_IN_PAIRS:
        raise PlacetoError(
            f"observations have {num_groups:,} groups, too many to relate each to each; at most "
            f"{MAX_GROUPS_IN_PAIRS:,} are possible; use a coarser grouping, such as auto"
        )
    order = topological_order(num_groups, source, target)
    if len(order) < num_groups:
        order = np.arange(num_groups)
    position = np.empty(num_groups, dtype=np.int64)
    position[order] = np.arange(num_groups)
    parent, child = directed(position, source, target)
    return _structure(num_groups, parent, child, ancestors(order, parent, child))


def _structure(num_groups: int, parent: Ints, child: Ints, above: Bools) -> Structure:
    senders = np.concatenate([parent, child + num_groups])
    hearers = np.concatenate([child, parent + num_groups])
    heard = np.bincount(hearers, minlength=DIRECTIONS * num_groups) > 0
    other = ~(above | above.T | np.eye(num_groups, dtype=bool))
    return Structure(
        links=_links(DIRECTIONS * num_groups, senders, hearers),
        heard=torch.from_numpy(heard.astype(np.float32).reshape(DIRECTIONS, num_groups, 1, 1)),
        levels=(_levels(num_groups, parent, child), _levels(num_groups, child, parent)),
        relatives=torch.from_numpy(np.stack([above, above.T, other])),
    )


def _links(num_hearers: int, senders: Ints, hearers: Ints) -> Links:
    start, items = compressed(num_hearers, hearers, senders)
    count = np.diff(start)
    return Links(
        senders=torch.from_numpy(items),
        first=torch.from_numpy(start[:-1].copy()),
        weights=torch.from_numpy(np.repeat(1 / np.maximum(count, 1), count).astype(np.float32)),
    )


def _levels(num_groups: int, sources: Ints, targets: Ints) -> tuple[Level, ...]:
    level = levels(num_groups, sources, targets)[targets]
    found = []
    for number in range(1, level.max(initial=0) + 1):
        edges = np.flatnonzero(level == number)
        groups, hearers = np.unique(targets[edges], return_inverse=True)
        links = _links(len(groups), sources[edges], hearers)
        found.append(Level(torch.from_numpy(groups), links))
    return tuple(found)
