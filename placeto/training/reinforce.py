"""REINFORCE with a baseline a step (Williams 1992; Addanki et al. 2019, arXiv:1906.08879)."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from placeto.graph import Floats
from placeto.models.settings import LearningConfig
from placeto.support.errors import PlacetoError
from placeto.support.threads import in_threads, one_thread_an_operation

# Takes (n,) log-probabilities of what was done, their advantages and which states they are of;
# gives the (n,) shares of these states in what is to become large.
Objective = Callable[[Tensor, Tensor, slice], Tensor]


@dataclass(frozen=True)
class UpdateStatistics:
    """What one gradient step looked like.

    Attributes:
        entropy: mean entropy of the policy over the states, in nats.
        gradient_norm: before clipping.
    """

    entropy: float
    gradient_norm: float


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


def policy_gradient(taken: Tensor, advantage: Tensor, part: slice) -> Tensor:
    """The objective of REINFORCE: log-probability times advantage."""
    return taken * advantage


@one_thread_an_operation()
def update(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    terms: Callable[[slice], tuple[Tensor, Tensor]],
    parts: Sequence[slice],
    advantages: Floats,
    objective: Objective = policy_gradient,
    *,
    entropy_bonus: float,
    gradient_norm: float,
    tick: Callable[[], None] = lambda: None,
) -> UpdateStatistics:
    """One step up the policy gradient, or up the gradient of another objective.

    Args:
        network: changed in place.
        optimizer: of its parameters.
        terms: log-probability of what was done in each of some states, and the entropy there.
        parts: states, each in one part; several parts are computed at once.
        advantages: (steps, episodes) of what was done; divided here by their standard deviation.
        objective: what is to become large beside the entropy.
        entropy_bonus: weight of the entropy.
        gradient_norm: what the gradient is clipped to.
        tick: called after every part of the states; what it raises leaves the network as it was.

    Returns:
        Entropy and gradient norm.

    Raises:
        PlacetoError: the gradient is not finite; the network is left as it was.
    """
    spread = float(advantages.std())
    weights = advantages / spread if spread > 0 else advantages
    advantage = torch.from_numpy(weights).flatten()
    states = len(advantage)
    parameters = list(network.parameters())

    def gradient_of(part: slice) -> tuple[float, tuple[Tensor, ...]]:
        taken, uncertainties = terms(part)
        uncertainty = uncertainties.sum()
        gain = objective(taken, advantage[part], part).sum()
        loss = -gain - entropy_bonus * uncertainty
        return float(uncertainty.detach()), torch.autograd.grad(loss / states, parameters)

    entropy, total = 0.0, [torch.zeros_like(parameter) for parameter in parameters]
    with closing(in_threads(gradient_of, parts)) as gradients:
        for uncertainty, gradient in gradients:
            tick()
            entropy += uncertainty
            for whole, term in zip(total, gradient, strict=True):
                whole += term
    for parameter, whole in zip(parameters, total, strict=True):
        parameter.grad = whole
    norm = torch.nn.utils.clip_grad_norm_(parameters, gradient_norm)
    if not norm.isfinite():
        raise PlacetoError("the gradient is not finite; a lower learning_rate may help")
    optimizer.step()
    return UpdateStatistics(entropy / states, float(norm))
