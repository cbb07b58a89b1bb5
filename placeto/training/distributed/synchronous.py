"""Synchronous training: the episodes of an update are played by several workers."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import torch

from placeto.models.agent import Played, Teacher, Wanted, joined
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.crew import Crew
from placeto.training.trainer import Trainer

Weights = dict[str, torch.Tensor]


class Share(NamedTuple):
    """Some of the episodes that are to be played with the same weights.

    What comes of it depends on nothing else, so that any worker can play it, and play it again.
    """

    weights: Weights  # of the policy
    rng: dict[str, Any]  # state of the generator that draws for all of the episodes
    wanted: Wanted


class PlayedShare(NamedTuple):
    """What came of a share."""

    episodes: Played
    rng: dict[str, Any]  # the generator's state afterwards, the same for all shares
    evaluations: int  # placements evaluated


def shares(whole: Share, workers: int) -> list[Share]:
    """The share of all episodes, cut into as many parts of almost one size; none is empty."""
    episodes = whole.wanted.episodes
    bounds = np.linspace(0, episodes, min(workers, episodes) + 1).astype(int).tolist()
    return [
        whole._replace(wanted=whole.wanted._replace(part=slice(*part))) for part in pairwise(bounds)
    ]


class Player:
    """What a rollout worker does: it plays shares of an update's episodes, on one thread."""

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        make_evaluator: Callable[[], Evaluator],
        number: int = 0,
    ) -> None:
        use_one_thread()
        self._trainer = Trainer(problems, config, make_evaluator())

    def __call__(self, share: Share) -> PlayedShare:
        """Plays a share."""
        trainer = self._trainer
        trainer.policy.load_state_dict(share.weights)
        trainer.rng.bit_generator.state = share.rng
        before = trainer.evaluations
        played = trainer.play(share.wanted)
        state = dict(trainer.rng.bit_generator.state)
        return PlayedShare(played, state, trainer.evaluations - before)


def use_one_thread() -> None:
    """Keeps to the one core that a worker is counted for."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)


Players = Crew[Share, PlayedShare]


class SynchronousTrainer(Trainer):
    """Trains as `Trainer` does, with the same result; only the episodes are played elsewhere.

    All workers play with the same weights, and each draws the random numbers of all episodes, its
    own and the others': however many workers there are, and whichever of them die, the episodes are
    those that `Trainer` would play. (A network's sums over fewer episodes at once may be rounded
    differently, which matters where two actions are as likely to the last bit.)

    It takes the arguments of `Trainer`; the workers have evaluators of their own.

    Attributes:
        steps: of all episodes that were played.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        evaluate: Evaluator = simulate_many,
        *,
        teacher: Teacher | None = None,
        players: Players,
    ) -> None:
        super().__init__(problems, config, evaluate, teacher=teacher)
        self._players = players
        self.steps = 0

    def play(self, wanted: Wanted) -> Played:
        """Has episodes played."""
        whole = Share(self.policy.state_dict(), dict(self.rng.bit_generator.state), wanted)
        parts = dict(self._players.map(shares(whole, self._players.size)))
        self.rng.bit_generator.state = parts[0].rng
        self.evaluations += sum(part.evaluations for part in parts.values())
        played: Played = joined([parts[number].episodes for number in sorted(parts)])
        self.steps += played.rewards.size
        self._compare(wanted.problem, played)
        return played
