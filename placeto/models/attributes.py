"""What of a problem's groups the policies that place all of them at once read."""

from dataclasses import dataclass

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Floats, Ints

OUTPUTS = 5
NEIGHBOURS = 6


@dataclass(frozen=True, eq=False)
class Attributes:
    """Attributes of the groups, in the order of `problem.group_order`.

    Those of Mirhoseini et al. 2017 (arXiv:1706.04972, section 3.3): types of the ops, sizes of
    the outputs as a list of fixed length, neighbours. They tell of no op's time: the papers'
    agents learn that from the step times alone.

    Attributes:
        types: (num_groups, num_types) how many ops of each type there are, types by name.
        outputs: (num_groups, 5) sizes of the largest tensors that leave the group, from the
            largest on, 0 where there are fewer: logarithm of the bytes over that of the graph's
            largest.
        parents: (num_groups, num_groups) 1 where the column's tensors are consumed by the row's
            ops, else 0; its transpose tells of the children.
        places: (num_groups, 13) where in the order the group is, its last six parents and its first
            six children, from 0 to 1; -1 where there are fewer (Mirhoseini et al. 2018, section 3).
    """

    types: Floats
    outputs: Floats
    parents: Floats
    places: Floats


def attributes(problem: PlacementProblem) -> Attributes:
    """Reads them off a problem."""
    order, position = problem.group_order, problem.group_position
    names, op_type = np.unique(problem.graph.op_types, return_inverse=True)
    types = np.zeros((problem.num_groups, len(names)))
    np.add.at(types, (position[problem.op_group], op_type), 1)
    parents = np.zeros((problem.num_groups, problem.num_groups))
    source, target, _ = problem.group_edges
    parents[position[target], position[source]] = 1
    return Attributes(types, _outputs(problem)[order], parents, _places(parents))


def _places(parents: Floats) -> Floats:
    """(num_groups, 13) as in `Attributes`."""
    groups = len(parents)
    place = np.arange(groups) / max(groups - 1, 1)
    places = np.full((groups, 1 + 2 * NEIGHBOURS), -1.0)
    places[:, 0] = place
    for group in range(groups):
        above = np.flatnonzero(parents[group])[::-1][:NEIGHBOURS]
        below = np.flatnonzero(parents[:, group])[:NEIGHBOURS]
        places[group, 1 : 1 + len(above)] = place[above]
        places[group, 1 + NEIGHBOURS : 1 + NEIGHBOURS + len(below)] = place[below]
    return places


def _outputs(problem: PlacementProblem) -> Floats:
    """(num_groups, 5) as in `Attributes`, groups by number."""
    graph, op_group = problem.graph, problem.op_group
    producer = op_group[graph.tensor_producer]
    leaves = np.zeros(graph.num_tensors, dtype=bool)
    away = op_group[graph.edge_consumer] != producer[graph.edge_tensor]
    leaves[graph.edge_tensor[away]] = True
    tensors = np.flatnonzero(leaves)
    tensors = tensors[np.lexsort((-graph.tensor_bytes[tensors], producer[tensors]))]
    groups: Ints = producer[tensors]
    rank = np.arange(len(tensors)) - np.searchsorted(groups, groups)
    sizes = np.log1p(graph.tensor_bytes[tensors].astype(np.float64))
    outputs = np.zeros((problem.num_groups, OUTPUTS))
    first = rank < OUTPUTS
    outputs[groups[first], rank[first]] = sizes[first]
    largest = outputs.max(initial=0.0)
    return outputs / largest if largest > 0 else outputs
