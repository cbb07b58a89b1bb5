"""What a policy for any devices knows of the groups before anything is placed."""

from dataclasses import dataclass

import numpy as np

from placeto.envs.features.pairs import TINY, log_shares, path_shares
from placeto.problem import PlacementProblem
from placeto.support.arrays import Features, Ints

GROUP_ATTRIBUTES = 8


@dataclass(frozen=True, eq=False)
class GroupGraph:
    """The group graph of a problem, in shares of the shortest time of all work on one device.

    Attributes:
        attributes: (num_groups, GROUP_ATTRIBUTES) work, longest paths of work up to and from the
            group, time on the slowest channel of what comes in and goes out, in- and out-degree,
            memory; between 0 and about 1.
        source: (num_group_edges,) group whose output is read.
        target: (num_group_edges,) group that reads it.
        edges: (num_group_edges, 1) time on the slowest channel, likewise.
    """

    attributes: Features
    source: Ints
    target: Ints
    edges: Features


def group_graph(problem: PlacementProblem) -> GroupGraph:
    """What a policy knows of the groups of a problem."""
    source, target, size = problem.group_edges
    groups = problem.num_groups
    work = problem.group_seconds.min(axis=1)
    whole = max(float(work.sum()), TINY)
    slowest = float(problem.arrays.bandwidth.min()) if len(problem.cluster.channels) else np.inf
    columns = [
        log_shares(work / whole),
        *path_shares(problem).T,
        *(log_shares(np.bincount(end, size, groups) / slowest / whole) for end in (target, source)),
        *(np.log1p(np.bincount(end, minlength=groups)) / 4 for end in (target, source)),
        log_shares(problem.group_memory / max(int(problem.memory_limit.min()), 1)),
    ]
    edges = log_shares(size / slowest / whole).astype(np.float32)[:, None]
    return GroupGraph(np.stack(columns, axis=1).astype(np.float32), source, target, edges)
