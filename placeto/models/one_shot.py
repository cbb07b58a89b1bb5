"""Agents that place all groups at once: an episode is one placement."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from torch import Tensor

from placeto.models.agent import ALL, Unschooled, Visit
from placeto.models.attributes import attributes
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


Choices = TypeVar("Choices")


@dataclass(frozen=True, eq=False)
class Shots(Generic[Choices]):
    """Some episodes of one step, whose action is a whole placement.

    Attributes:
        choices: what was drawn, that the placements came of.
        rewards: (1, episodes) minus the square root of the penalised step time in seconds.
        devices: (episodes, num_groups) the placements.
        step_time: (episodes,) their seconds.
        best_cost: (episodes,) their penalised step times, in seconds.
    """

    # Along which axis the episodes of an array are. What is not named is the same for all.
    AXES: ClassVar = {
        **dict.fromkeys(("choices", "rewards"), 1),
        **dict.fromkeys(("devices", "step_time", "best_cost"), 0),
    }

    choices: Choices
    rewards: Floats
    devices: Ints
    step_time: Floats
    best_cost: Floats

    @property
    def unreported(self) -> int:
        """None: a visitor is told of all."""
        return 0


class OneShotAgent(Unschooled, ABC, Generic[Choices]):
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

    network: Network

    def __init__(
        self, problems: Sequence[PlacementProblem], config: OneShotConfig, evaluate: Evaluator
    ) -> None:
        if len(problems) > 1:
            raise PlacetoError(
                f"{len(problems)} problems, but this agent's network has the size of one problem"
            )
        self.problem = problems[0]
        self.attributes = attributes(self.problem)
        self._config = config
        self._evaluate = evaluate

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
    ) -> Shots[Choices]:
        """Draws placements, and evaluates them all at once.

        Raises:
            PlacetoError: a start is given.
        """
        if start is not None:
            raise PlacetoError("this agent places all groups at once: its episodes have no start")
        with one_thread_an_operation():
            choices, devices = self.draw(rng, episodes, part, greedy)
        outcomes = self._evaluate(self.problem, devices)
        if visit is not None:
            visit(devices, outcomes)
        cost = penalised_time(self.problem, outcomes, self._config.memory_penalty)
        return Shots(choices, -np.sqrt(cost)[None], devices, outcomes.step_time, cost)

    def states_at_once(self, index: int) -> int:
        """A few episodes."""
        return EPISODES_AT_ONCE

    @abstractmethod
    def draw(
        self, rng: np.random.Generator, episodes: int, part: slice, greedy: bool
    ) -> tuple[Choices, Ints]:
        """What was drawn for a part of the episodes, and the placements that come of it."""

    @abstractmethod
    def terms(self, index: int, played: Shots[Choices], part: slice) -> tuple[Tensor, Tensor]:
        """Log-probability of whole placements, and the entropy of a choice on average."""
