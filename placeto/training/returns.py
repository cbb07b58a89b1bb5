"""What the rewards of episodes come to, and what that is compared with."""

import numpy as np

from placeto.models.settings import LearningConfig
from placeto.support.arrays import Floats


def returns_to_go(rewards: Floats) -> Floats:
    """(steps, episodes) sums of the rewards from each step on (discount 1)."""
    returns: Floats = rewards[::-1].cumsum(axis=0)[::-1]
    return returns


class Baselines:
    """What the returns from each step on are compared with, of each problem.

    Attributes:
        past: of each problem, (steps, n) what is remembered: the returns of the last episodes, or
            one moving average.
    """

    def __init__(self, config: LearningConfig) -> None:
        self._config = config
        self.past: dict[str, Floats] = {}

    def advantages(self, problem: str, returns: Floats) -> Floats:
        """Remembers (steps, episodes) returns; gives them less the baseline of their step.

        A `moving` average is of the updates before this one, and of this one where it is the
        first: the average of the papers by Mirhoseini et al. (2017, arXiv:1706.04972; 2018).
        """
        if self._config.baseline == "moving":
            return self._above_average(problem, returns)
        past = self.past.get(problem, returns[:, :0])
        keep = max(self._config.baseline_episodes, returns.shape[1])
        recent = np.concatenate([past, returns], axis=1)[:, -keep:]
        self.past[problem] = recent
        baseline: Floats = recent.mean(axis=1, keepdims=True)
        return returns - baseline

    def _above_average(self, problem: str, returns: Floats) -> Floats:
        mean: Floats = returns.mean(axis=1, keepdims=True)
        average = self.past.get(problem, mean)
        decay = self._config.baseline_decay
        self.past[problem] = decay * average + (1 - decay) * mean
        return returns - average
