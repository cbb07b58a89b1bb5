"""What a trainer asks of an agent."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation import Outcomes
from placeto.support.arrays import Floats, Ints

if TYPE_CHECKING:  # torch is slow to import
    from torch import Tensor

    from placeto.models.network import Network

Visit = Callable[[Ints, Outcomes], None]
Teacher = Callable[[PlacementProblem], Ints]
"""Gives a good placement of a problem, (num_groups,) devices; the same whenever it is asked."""


class Wanted(NamedTuple):
    """Episodes that are to be played.

    All that is random is drawn for all of them, so that parts that are played apart are what would
    be played together.
    """

    problem: int  # its number
    episodes: int
    part: slice = slice(None)  # which of them are played
    greedy: bool = False  # whether the most likely action is taken instead of a drawn one
    start: Ints | None = None  # (num_groups,) of every episode; default: as the agent has it

    def noise(self, rng: np.random.Generator, *shape: int) -> Floats:
        """What logits are raised by: the largest with Gumbel noise is a draw from the softmax."""
        return np.zeros(shape) if self.greedy else rng.gumbel(size=shape)


@dataclass(frozen=True, eq=False)
class Played:
    """What every agent's episodes tell the trainer; agents remember more of them."""

    # Along which axis the episodes of an array are. What is not named is the same for all.
    AXES: ClassVar = {"rewards": 1, "devices": 0, "step_time": 0, "best_cost": 0}

    rewards: Floats  # (steps, episodes) what the sum of is to become large
    devices: Ints  # (episodes, num_groups) the last placements
    step_time: Floats  # (episodes,) seconds of the last placements
    best_cost: Floats  # (episodes,) least penalised step time on the way, in seconds

    @property
    def unreported(self) -> int:
        """How many placements were simulated on the way that no visitor was told of."""
        return 0


def joined(parts: Sequence[Any]) -> Any:
    """All episodes of some parts, at least one, in their order; of one problem and one kind."""
    columns = {
        name: _column([getattr(part, name) for part in parts], axis)
        for name, axis in parts[0].AXES.items()
    }
    return replace(parts[0], **columns)


def _column(values: Sequence[Any], axis: int) -> Any:
    if hasattr(values[0], "AXES"):
        return joined(values)
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values, axis=axis)
    import torch

    return torch.cat(list(values), dim=axis)


Remembered = TypeVar("Remembered", bound=Played)


class Agent(ABC, Generic[Remembered]):
    """How episodes are played, and how likely what was done in them is.

    A state is a step of an episode; states are numbered step by step, episode by episode.

    Attributes:
        network: what is trained.
    """

    network: "Network"

    def lesson(self, index: int, number: int, progress: float) -> Remembered | None:
        """Episodes whose actions are to become likelier; None where it learns from its own.

        Args:
            index: which problem.
            number: which of its lessons, from 0.
            progress: how much of the run is over, from 0 to 1.
        """
        return None

    @abstractmethod
    def roll_out(
        self, wanted: Wanted, rng: np.random.Generator, visit: Visit | None = None
    ) -> Remembered:
        """Plays episodes of a problem.

        Args:
            wanted: which.
            rng: draws all that is random.
            visit: told of every batch of placements that was evaluated.
        """

    @abstractmethod
    def states_at_once(self, index: int) -> int:
        """How many states of a problem a thread computes `terms` of at once."""

    @abstractmethod
    def terms(self, index: int, played: Remembered, part: slice) -> "tuple[Tensor, Tensor]":
        """Log-probability of what was done in some states, and the policy's entropy in them.

        Args:
            index: of the problem that was played.
            played: the episodes.
            part: which states.

        Returns:
            Two (n,) tensors, in nats, that gradients flow back from.
        """
