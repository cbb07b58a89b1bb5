"""Synchronous training: the episodes of an update are played by several workers."""

from collections.abc import Sequence

import numpy as np

from placeto.models.agent import Episodes, Teacher
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, simulate_many
from placeto.support.arrays import Ints
from placeto.support.crew import Crew
from placeto.training.distributed.joined import joined
from placeto.training.distributed.player import PlayedShare, Share, shares
from placeto.training.trainer import Trainer

Players = Crew[Share, PlayedShare]


class SynchronousTrainer(Trainer):
    """Trains as `Trainer` does, with the same result; only the episodes are played elsewhere.

    All workers play with the same weights, and each draws the random numbers of all episodes, its
    own and the others': however many workers there are, and whichever of them die, the episodes are
    those that `Trainer` would play. (A network's sums over fewer episodes at once may be rounded
    differently, which matters where two actions are as likely to the last bit.)

    Args:
        problems: what to place.
        config: how to train, and which agent.
        evaluate: as of `Trainer`; the workers have their own.
        teacher: as of `Trainer`.
        players: the workers.

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

    def roll_out(
        self, index: int, *, episodes: int, greedy: bool = False, start: Ints | None = None
    ) -> Episodes:
        """Has episodes of problem `index` played; see `Agent.roll_out`."""
        whole = Share(
            weights=self.policy.state_dict(),
            index=index,
            rng=dict(self.rng.bit_generator.state),
            episodes=episodes,
            part=slice(0, episodes),
            greedy=greedy,
            start=self._starts[index] if start is None else start,
        )
        parts = dict(self._players.map(shares(whole, self._players.size)))
        self.rng.bit_generator.state = parts[0].rng
        self.evaluations += sum(part.evaluations for part in parts.values())
        rollout: Episodes = joined([parts[number].episodes for number in sorted(parts)])
        self.steps += rollout.rewards.size
        self.best[index] = min(self.best[index], float(np.min(rollout.best_cost)))
        return rollout
