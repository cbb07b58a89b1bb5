"""What a rollout worker does: it plays its share of an update's episodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import torch

from placeto.models.agents import agent_of
from placeto.models.settings import LearningConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator, Outcomes
from placeto.support.arrays import Ints

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Share:
    """Some of the episodes that are to be played with the same weights.

    What comes of it depends on nothing else, so that any worker can play it, and play it again.

    Attributes:
        weights: of the policy.
        index: which problem.
        rng: state of the generator that draws for all of the episodes.
        episodes: how many all are.
        part: which of them are played.
        greedy: whether the most likely action is taken.
        start: (num_groups,) where every episode starts; None: as the agent is configured.
    """

    weights: Weights
    index: int
    rng: dict[str, Any]
    episodes: int
    part: slice
    greedy: bool = False
    start: Ints | None = None


@dataclass(frozen=True, eq=False)
class PlayedShare:
    """What came of a share.

    Attributes:
        episodes: as the agent tells of them.
        rng: the generator's state afterwards, the same for all shares.
        evaluations: placements evaluated.
    """

    episodes: Any
    rng: dict[str, Any]
    evaluations: int


def shares(whole: Share, workers: int) -> list[Share]:
    """The share of all episodes, cut into as many parts of almost one size; none is empty."""
    bounds = np.linspace(0, whole.episodes, min(workers, whole.episodes) + 1).astype(int)
    return [replace(whole, part=slice(int(first), int(last))) for first, last in pairwise(bounds)]


class Player:
    """Plays shares of episodes, on one thread.

    Args:
        problems: of the run.
        config: of the run.
        make_evaluator: makes what turns placements into step times.
        number: of the worker.
    """

    def __init__(
        self,
        problems: Sequence[PlacementProblem],
        config: LearningConfig,
        make_evaluator: Callable[[], Evaluator],
        number: int = 0,
    ) -> None:
        use_one_thread()
        with torch.random.fork_rng():
            self._agent = agent_of(config).make(problems, config, make_evaluator(), None)

    def __call__(self, share: Share) -> PlayedShare:
        """Plays a share."""
        self._agent.network.load_state_dict(share.weights)
        rng = np.random.default_rng()
        rng.bit_generator.state = share.rng
        evaluations = 0

        def count(devices: Ints, outcomes: Outcomes) -> None:
            nonlocal evaluations
            evaluations += len(devices)

        played = self._agent.roll_out(
            share.index,
            rng,
            episodes=share.episodes,
            part=share.part,
            greedy=share.greedy,
            start=share.start,
            visit=count,
        )
        evaluations += played.unreported
        return PlayedShare(played, dict(rng.bit_generator.state), evaluations)


def use_one_thread() -> None:
    """Keeps to the one core that a worker is counted for."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)
