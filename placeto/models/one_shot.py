"""Agents that place all groups at once: an episode is one placement; what they read of groups."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from placeto.models.agent import Agent, Played, Visit, Wanted
from placeto.models.network import Network
from placeto.models.settings import OneShotConfig
from placeto.objective import penalised_time
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.support.arrays import Floats, Ints
from placeto.support.errors import PlacetoError
from placeto.support.threads import one_thread_an_operation

# An LSTM's step costs hardly more for more episodes: two threads with half of them gain nothing.
EPISODES_AT_ONCE = 64

# Of `Attributes`: outputs of a group, and parents and children.
OUTPUTS = 5
NEIGHBOURS = 6

Choices = TypeVar("Choices")


@dataclass(frozen=True, eq=False)
class Shots(Played, Generic[Choices]):
    """Some episodes of one step; rewards are minus the square root of the penalised seconds."""

    AXES: ClassVar = Played.AXES | {"choices": 1}

    choices: Choices  # what was drawn, that the placements came of


class OneShotAgent(Agent[Shots[Choices]], Generic[Choices]):
    """What is common to agents that place all groups at once.

    The reward is that of Mirhoseini et al. 2017 (section 3.1), R = sqrt(step time), with a minus
    sign. A placement that does not fit in memory fails there and gets a large constant; here it
    gets the penalised step time that all placers are judged by, so that less overflow is better.

    Args:
        problems: the one that is placed.
        config: how to train.
        evaluate: turns placements into step times.

    Raises:
        PlacetoError: several problems: a network has the size of one.
    """

    def __init__(
        self, problems: Sequence[PlacementProblem], config: OneShotConfig, evaluate: Evaluator
    ) -> None:
        if len(problems) > 1:
            raise PlacetoError(
                f"{len(problems)} problems, but this agent's network has the size of one problem"
            )
        self.problem = problem = problems[0]
        self.attributes = attributes(problem)
        self._allowed = torch.from_numpy(problem.allowed[problem.group_order])
        self._config = config
        self._evaluate = evaluate
        self.network = self._policy(
            width=config.width,
            num_types=self.attributes.types.shape[1],
            num_devices=problem.num_devices,
        )

    def roll_out(
        self, wanted: Wanted, rng: np.random.Generator, visit: Visit | None = None
    ) -> Shots[Choices]:
        """Draws placements, and evaluates them all at once.

        Raises:
            PlacetoError: a start is given.
        """
        if wanted.start is not None:
            raise PlacetoError("this agent places all groups at once: its episodes have no start")
        with one_thread_an_operation():
            choices, devices = self.draw(wanted, rng)
        outcomes = self._evaluate(self.problem, devices)
        if visit is not None:
            visit(devices, outcomes)
        cost = penalised_time(self.problem, outcomes, self._config.memory_penalty)
        return Shots(-np.sqrt(cost)[None], devices, outcomes.step_time, cost, choices)

    def states_at_once(self, index: int) -> int:
        """A few episodes."""
        return EPISODES_AT_ONCE

    @abstractmethod
    def _policy(self, **sizes: int) -> Network:
        """The network of the problem, of a width, for so many types of ops and devices."""

    @abstractmethod
    def draw(self, wanted: Wanted, rng: np.random.Generator) -> tuple[Choices, Ints]:
        """What was drawn for the episodes, and the placements that come of it."""


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

    def embedded(self, types: nn.Linear, *others: Floats) -> Tensor:
        """(num_groups, …) each group's ops' types, embedded, on average, and what else is known."""
        shares = self.types / self.types.sum(axis=1, keepdims=True)
        embedding, *known = (
            torch.from_numpy(each).to(types.weight.dtype) for each in (shares, *others)
        )
        return torch.cat([types(embedding), *known], dim=-1)


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
