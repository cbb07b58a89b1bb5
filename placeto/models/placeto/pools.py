"""Sums over the groups on each device, by what they are to the group that is placed.

Placeto pools a node's ancestors, its descendants and its parallel nodes apart (Addanki et al. 2019,
arXiv:1906.08879, section 3.2). Here every device has pools of its own, of the groups that are on it
in the present placement, as in DOPPLER (Yao et al. 2025, arXiv:2505.23131): what is pooled changes
with every step, while the embeddings are made once a graph.
"""

from typing import NamedTuple

import numpy as np

from placeto.envs.features.groups import GroupGraph
from placeto.envs.features.pairs import PAIR_FEATURES
from placeto.problem import PlacementProblem
from placeto.simulation.state import State
from placeto.support.arrays import Bools, Features, Int8s, Int16s, Ints
from placeto.support.dags import compressed
from placeto.support.jit import inner, njit

PARALLEL, ANCESTOR, DESCENDANT = range(3)
RELATIONS = 3
SUMS = 2  # of each head: of work, and of bytes


class Kin(NamedTuple):
    """How the groups of a problem are related."""

    relation: Int8s  # (num_groups, num_groups) what the column is to the row
    position: Features  # (num_groups,) longest path of work to it, as a share of the longest
    work: Features  # (num_groups,) time on the fastest device, as a share of all
    start: Ints  # (num_groups + 1,) compressed rows of the next two
    neighbour: Ints  # (n,) the groups that each one reads, or is read by
    share: Features  # (n,) of all bytes that it reads and that are read of it


class Affinity(NamedTuple):
    """What the heads of a policy make of two groups of a problem; see `PlacetoPolicy.pooled`.

    Without pools there are no heads.
    """

    queries: Features  # (num_groups, heads, rank)
    keys: Features  # (num_groups, heads, rank)
    by_relation: Features  # (2, RELATIONS, heads), the second of groups that were visited
    apart: Features  # (2, heads) by how far apart they are along the path, and in time


def kin_of(problem: PlacementProblem, graph: GroupGraph) -> Kin:
    """How the groups of a problem are related.

    Raises:
        PlacetoError: there are too many groups to relate each to each.
    """
    groups = problem.num_groups
    relation = np.where(problem.ancestors, np.int8(ANCESTOR), np.int8(PARALLEL))
    relation[problem.ancestors.T] = DESCENDANT
    source, target, size = problem.group_edges
    rows, others = np.concatenate([source, target]), np.concatenate([target, source])
    sizes = np.concatenate([size, size]).astype(np.float64)
    sizes /= np.maximum(np.bincount(rows, sizes, groups), 1.0)[rows]
    start, index = compressed(groups, rows, np.arange(len(rows)))
    work = problem.group_seconds.min(axis=1)
    return Kin(
        relation=relation,
        position=np.ascontiguousarray(graph.attributes[:, 1]),
        work=(work / max(float(work.sum()), np.finfo(float).tiny)).astype(np.float32),
        start=start,
        neighbour=others[index],
        share=sizes[index].astype(np.float32),
    )


def no_kin() -> Kin:
    """Where nothing is pooled."""
    none, numbers = np.zeros(0, np.float32), np.zeros(0, np.int64)
    return Kin(np.zeros((0, 0), np.int8), none, none, numbers, numbers, none)


def no_affinity(num_groups: int) -> Affinity:
    """Likewise, of so many groups."""
    none = np.zeros((num_groups, 0, 0), np.float32)
    empty = np.zeros((2, RELATIONS, 0), np.float32)
    return Affinity(none, none, empty, empty[:, 0])


@inner(cache=True)
def columns_of(a: Affinity) -> int:
    """Of what is seen and pooled of a device."""
    columns: int = PAIR_FEATURES + SUMS * a.queries.shape[1]
    return columns


@inner(cache=True)
def start_of(s: State, group: int) -> float:
    """When a group's first op that takes time starts, in seconds; 0 if none does."""
    start: float = max(s.group_start[group], 0.0)
    return start


@inner(cache=True, fastmath=True, error_model="numpy")
def pool(
    a: Affinity, kin: Kin, s: State, share: float, group: int, visited: Bools, x: Features
) -> None:
    """Fills in what is pooled of each device for a group.

    Args:
        a: what the policy makes of the groups.
        kin: how they are related.
        s: the present schedule, at its end.
        share: 1 / step time, of seconds.
        group: which.
        visited: (num_groups,) whose devices were chosen in this episode.
        x: (num_devices, n), whose last SUMS * heads columns are filled.
    """
    heads, rank = a.queries.shape[1], a.queries.shape[2]
    if heads == 0:
        return
    column = x.shape[1] - SUMS * heads
    x[:, column:] = 0
    for other in range(len(kin.work)):
        if other != group:
            _meet(a, kin, s, share, group, other, visited, heads, rank, kin.work[other], x, column)
    for index in range(kin.start[group], kin.start[group + 1]):
        _meet(
            a, kin, s, share, group, kin.neighbour[index], visited, heads, rank, kin.share[index],
            x, column + heads,
        )  # fmt: skip


@inner(cache=True, fastmath=True, error_model="numpy")
def _meet(
    a: Affinity, kin: Kin, s: State, share: float, group: int, other: int, visited: Bools,
    heads: int, rank: int, weight: float, x: Features, column: int,
) -> None:  # fmt: skip
    """Adds another group to the sums of its device, weighted by each head's affinity."""
    bias = a.by_relation[1 if visited[other] else 0, kin.relation[group, other]]
    along = abs(kin.position[group] - kin.position[other])
    late = np.float32(abs(start_of(s, group) - start_of(s, other)) * share)
    row = x[s.device_of[other]]
    for head in range(heads):
        value = bias[head] + along * a.apart[0, head] + late * a.apart[1, head]
        for unit in range(rank):
            value += a.queries[group, head, unit] * a.keys[other, head, unit]
        row[column + head] += weight * value / (1 + abs(value))


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def sums(
    static: Features, late: Features, current: Ints, devices: Int16s, visited: Bools,
    starts: Features, work: Features, share: Features, num_devices: int,
) -> Features:  # fmt: skip
    """What is pooled in many states.

    Args:
        static: (2, num_groups, num_groups, heads) what affinities are made of but for the schedule:
            of the row for the column, before the column's device was chosen and after.
        late: (heads,) what is added by how far apart they start.
        current: (batch,) groups.
        devices: (batch, num_groups) of all groups.
        visited: (batch, num_groups) whose devices were chosen.
        starts: (batch, num_groups) of all groups, as shares of the step time.
        work: (num_groups,) share of all work.
        share: (num_groups, num_groups) of the row's bytes, those from and to the column.
        num_devices: how many.

    Returns:
        (batch, num_devices, SUMS * heads).
    """
    heads = len(late)
    found = np.zeros((len(current), num_devices, SUMS * heads), np.float32)
    for state in range(len(current)):
        group = current[state]
        for other in range(len(work)):
            if other == group:
                continue
            row = found[state, devices[state, other]]
            pair = static[1 if visited[state, other] else 0, group, other]
            apart = abs(starts[state, group] - starts[state, other])
            by_work, by_bytes = work[other], share[group, other]
            for head in range(heads):
                value = pair[head] + apart * late[head]
                affinity = value / (1 + abs(value))
                row[head] += by_work * affinity
                row[heads + head] += by_bytes * affinity
    return found


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def sums_backward(
    static: Features, late: Features, current: Ints, devices: Int16s, visited: Bools,
    starts: Features, work: Features, share: Features, gradient: Features,
) -> tuple[Features, Features]:  # fmt: skip
    """Gradients by `static` and `late` of what depends on `sums`, by the gradient of these."""
    heads = len(late)
    by_static, by_late = np.zeros_like(static), np.zeros_like(late)
    for state in range(len(current)):
        group = current[state]
        for other in range(len(work)):
            if other == group:
                continue
            row = gradient[state, devices[state, other]]
            place = 1 if visited[state, other] else 0
            pair, filled = static[place, group, other], by_static[place, group, other]
            apart = abs(starts[state, group] - starts[state, other])
            by_work, by_bytes = work[other], share[group, other]
            for head in range(heads):
                size = 1 + abs(pair[head] + apart * late[head])
                slope = (by_work * row[head] + by_bytes * row[heads + head]) / (size * size)
                filled[head] += slope
                by_late[head] += slope * apart
    return by_static, by_late
