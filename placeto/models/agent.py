"""What a trainer asks of an agent."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from torch import Tensor

from placeto.models.network import Network
from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes
from placeto.support.arrays import Floats, Ints

Visit = Callable[[Ints, Outcomes], None]
Teacher = Callable[[PlacementProblem], Ints]
"""Gives a good placement of a problem, (num_groups,) devices; the same whenever it is asked."""

ALL = slice(None)


class Episodes(Protocol):
    """What every agent's episodes tell the trainer; agents remember more of them."""

    @property
    def rewards(self) -> Floats:
        """(steps, episodes) what the sum of is to become large."""

    @property
    def devices(self) -> Ints:
        """(episodes, num_groups) the last placements."""

    @property
    def step_time(self) -> Floats:
        """(episodes,) seconds of the last placements."""

    @property
    def best_cost(self) -> Floats:
        """(episodes,) least penalised step time on the way, in seconds."""

    @property
    def unreported(self) -> int:
        """How many placements were simulated on the way that no visitor was told of."""


Played = TypeVar("Played", bound=Episodes)


class Agent(Protocol[Played]):
    """How episodes are played, and how likely what was done in them is.

    A state is a step of an episode; states are numbered step by step, episode by episode.
    """

    @property
    def network(self) -> Network:
        """What is trained."""

    def lesson(self, index: int, number: int, progress: float) -> Played | None:
        """Episodes whose actions are to become likelier; None where it learns from its own.

        Args:
            index: which problem.
            number: which of its lessons, from 0.
            progress: how much of the run is over, from 0 to 1.
        """

    def roll_out(
        self,
        index: int,
        rng: np.random.Generator,
        *,
        episodes: int,
        part: slice = ALL,
        greedy: bool = False,
        start: Ints | None = None,
        visit: Visit | None = None,
    ) -> Played:
        """Plays episodes of a problem.

        Args:
            index: which problem.
            rng: draws all that is random.
            episodes: how many.
            part: which of them to play. All that is random is drawn for all of them, so that parts
                that are played apart are what would be played together.
            greedy: whether the most likely action is taken instead of a drawn one.
            start: (num_groups,) where every episode starts; default: as the agent is configured.
            visit: told of every batch of placements that was evaluated.
        """

    def states_at_once(self, index: int) -> int:
        """How many states of a problem a thread computes `terms` of at once."""

    def terms(self, index: int, played: Played, part: slice) -> tuple[Tensor, Tensor]:
        """Log-probability of what was done in some states, and the policy's entropy in them.

        Args:
            index: of the problem that was played.
            played: the episodes.
            part: which states.

        Returns:
            Two (n,) tensors, in nats, that gradients flow back from.
        """


class Unschooled:
    """An agent that imitates nobody."""

    def lesson(self, index: int, number: int, progress: float) -> None:
        """None: it learns from its own episodes."""
