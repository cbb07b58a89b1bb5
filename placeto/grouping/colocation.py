"""The co-location rules of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972, section 3.3)."""

import numpy as np

from placeto.graph import ComputationGraph
from placeto.grouping.disjoint_sets import equal_keys, join_pairs, numbered, root, roots
from placeto.support.arrays import Floats, Ints
from placeto.support.jit import njit

SOLE_CONSUMER_SHARE = 0.01
LIGHT_SHARE = 1e-4
GRADIENT_SCOPES = ("gradient_tape/", "gradients/")


def required_groups(graph: ComputationGraph) -> Ints:
    """(num_ops,) groups of ops that must share a device, numbered by their first op.

    Copies of an op in several microbatches need not, and do: weights are where they are read.
    """
    return numbered(roots(_same_key(graph)))


def colocation_groups(graph: ComputationGraph) -> Ints:
    """Groups by the co-location rules of ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972).

    Joined are: ops with the same `colocation` key; copies of an op; an op of a gradient scope
    (`gradient_tape/dense/MatMul/…`) with the forward op that the scope names, or else with the
    first op of the scope; and an op with the only op that consumes anything of it. The last rule
    would join a whole network through its chain of sole consumers; it therefore joins two groups
    only if together they take at most 1% of the step, or one takes next to nothing (0.01%).

    Returns:
        (num_ops,) groups, numbered by their first op.
    """
    parent = _same_key(graph)
    join_pairs(parent, *_gradients(graph))
    share = np.bincount(roots(parent), weights=op_share(graph), minlength=graph.num_ops)
    _join_light(parent, share, *_sole_consumers(graph))
    return numbered(roots(parent))


def _same_key(graph: ComputationGraph) -> Ints:
    """Disjoint sets of ops that have the same `colocation` key, and of copies of one op."""
    parent = np.arange(graph.num_ops)
    join_pairs(parent, *equal_keys(graph.colocation))
    copies = np.flatnonzero(graph.copy_of >= 0)
    join_pairs(parent, copies, graph.copy_of[copies])
    return parent


def op_share(graph: ComputationGraph) -> Floats:
    """(num_ops,) share of the step's time of each op, the mean over device kinds."""
    share = np.zeros(graph.num_ops)
    for seconds in graph.op_seconds.values():
        finite = np.where(np.isfinite(seconds), seconds, 0)
        share += finite / max(finite.sum(), np.finfo(float).tiny)
    return share / max(len(graph.op_seconds), 1)


def _gradients(graph: ComputationGraph) -> tuple[Ints, Ints]:
    """Ops in a gradient scope, and the op that each belongs to, read off their names."""
    # Forward ops by name, and the first op of every scope by the scope.
    places: dict[str, int] = {}
    scopes: list[tuple[int, str]] = []
    for op, name in enumerate(graph.op_names):
        for scope in GRADIENT_SCOPES:
            if scope in name:
                # Forward ops of a microbatch stand in its scope.
                begin = f"microbatch{graph.microbatch[op]}/"
                before = begin if name.startswith(begin) else ""
                scopes.append((op, before + name[name.index(scope) + len(scope) :]))
                break
        else:
            end = name.rfind("/")
            # A scope that is known has all the scopes around it known.
            while end >= 0 and (inside := name[:end]) not in places:
                places[inside] = op
                end = name.rfind("/", 0, end)
            places[name] = op
    pairs = []
    for op, path in scopes:
        # At least two parts: a single one is the scope of the whole model.
        while "/" in path:
            if (forward := places.get(path)) is not None:
                pairs.append((op, forward))
                break
            path = path[: path.rindex("/")]
    gradients, forwards = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    return gradients, forwards


def _sole_consumers(graph: ComputationGraph) -> tuple[Ints, Ints]:
    """Ops that one op alone consumes outputs of, and that op, by producer."""
    producers, consumers = graph.op_edges
    lowest, highest = np.full(graph.num_ops, graph.num_ops), np.full(graph.num_ops, -1)
    np.minimum.at(lowest, producers, consumers)
    np.maximum.at(highest, producers, consumers)
    ops = np.flatnonzero(lowest == highest)
    return ops, lowest[ops]


@njit(cache=True)
def _join_light(parent: Ints, share: Floats, producers: Ints, consumers: Ints) -> None:
    for index in range(len(producers)):
        a, b = root(parent, producers[index]), root(parent, consumers[index])
        light = min(share[a], share[b]) <= LIGHT_SHARE
        if a != b and (light or share[a] + share[b] <= SOLE_CONSUMER_SHARE):
            low, high = min(a, b), max(a, b)
            parent[high] = low
            share[low] += share[high]
