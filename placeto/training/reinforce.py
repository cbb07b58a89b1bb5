"""REINFORCE with a baseline a step (Williams 1992; Addanki et al. 2019, arXiv:1906.08879)."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from placeto.errors import PlacetoError
from placeto.graph import Floats
from placeto.models import PlacetoPolicy, Structure
from placeto.training.rollout import Rollout, masked
from placeto.training.threads import in_threads, one_thread_an_operation

# Of all states that a thread takes at once: what it computes of so many stays in the caches.
GROUPS_AT_ONCE = 16384


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
    """The mean return from each step on, of the last episodes of each problem."""

    def __init__(self, episodes: int) -> None:
        self.episodes = episodes
        self.past: dict[str, Floats] = {}

    def advantages(self, problem: str, returns: Floats) -> Floats:
        """Remembers (steps, episodes) returns; gives them less the baseline of their step."""
        past = self.past.get(problem, returns[:, :0])
        keep = max(self.episodes, returns.shape[1])
        recent = np.concatenate([past, returns], axis=1)[:, -keep:]
        self.past[problem] = recent
        baseline: Floats = recent.mean(axis=1, keepdims=True)
        return returns - baseline


@one_thread_an_operation()
def update(
    policy: PlacetoPolicy,
    optimizer: torch.optim.Optimizer,
    graph: Structure,
    rollout: Rollout,
    advantages: Floats,
    *,
    entropy_bonus: float,
    gradient_norm: float,
    tick: Callable[[], None] = lambda: None,
) -> UpdateStatistics:
    """One step up the policy gradient.

    Args:
        policy: changed in place.
        optimizer: of its parameters.
        graph: structure of the rollout's problem.
        rollout: (steps, episodes) states and actions.
        advantages: (steps, episodes); divided here by their standard deviation.
        entropy_bonus: weight of the entropy.
        gradient_norm: what the gradient is clipped to.
        tick: called after every part of the states; what it raises leaves the policy as it was.

    Returns:
        Entropy and gradient norm.

    Raises:
        PlacetoError: the gradient is not finite; the policy is left as it was.
    """
    spread = float(advantages.std())
    weights = advantages / spread if spread > 0 else advantages
    features = torch.from_numpy(rollout.features).flatten(0, 1)
    columns = (rollout.current, rollout.allowed, rollout.actions, weights)
    current, allowed, actions, advantage = (torch.from_numpy(c).flatten(0, 1) for c in columns)
    states = len(features)
    parameters = list(policy.parameters())

    def gradient_of(part: slice) -> tuple[float, tuple[Tensor, ...]]:
        logits = masked(policy(features[part], current[part], graph), allowed[part])
        log = logits.log_softmax(dim=-1)
        taken = log.gather(1, actions[part, None]).squeeze(1)
        uncertainty = _entropy(log).sum()
        loss = -(taken * advantage[part]).sum() - entropy_bonus * uncertainty
        return float(uncertainty.detach()), torch.autograd.grad(loss / states, parameters)

    entropy, total = 0.0, [torch.zeros_like(parameter) for parameter in parameters]
    at_once = max(GROUPS_AT_ONCE // features.shape[1], 1)
    parts = [slice(begin, begin + at_once) for begin in range(0, states, at_once)]
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


def _entropy(log: Tensor) -> Tensor:
    """Entropy of each row of log-probabilities; impossible choices count nothing."""
    return -(log.exp() * log.masked_fill(log == -torch.inf, 0)).sum(dim=-1)
