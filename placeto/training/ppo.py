"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347)."""

from collections.abc import Callable

import torch
from torch import Tensor

from placeto.training.reinforce import Objective, UpdateStatistics

GradientStep = Callable[[Objective], UpdateStatistics]


def clipped_surrogate(taken: Tensor, old: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """The objective of equation 7: min(r A, clip(r, 1 - clip, 1 + clip) A).

    Args:
        taken: (n,) log-probabilities of what was done, in nats.
        old: (n,) the same of the policy that did it; no gradient flows back from them.
        advantage: (n,) A.
        clip: how far the ratio r = exp(taken - old) is followed away from 1.

    Returns:
        (n,) what is to become large. It has no gradient where r is above 1 + clip and A is
        positive, or r is below 1 - clip and A is negative.
    """
    ratio = (taken.double() - old).exp()  # of a whole placement it may be beyond single precision
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


def update(step: GradientStep, states: int, *, epochs: int, clip: float) -> UpdateStatistics:
    """Some steps up the clipped surrogate objective on the same episodes.

    There is no critic: the advantages are REINFORCE's, returns less a baseline, the same in every
    epoch. An epoch is one gradient step on all states, where the paper takes minibatches of them.
    In the first epoch all ratios are 1, and its step is REINFORCE's.

    Args:
        step: takes a gradient step up an objective; what ends one leaves those before it taken.
        states: how many the episodes have.
        epochs: how many gradient steps.
        clip: see `clipped_surrogate`.

    Returns:
        Entropy and gradient norm in the first epoch: of the policy that played the episodes.

    Raises:
        PlacetoError: a gradient is not finite; the epochs before it are taken.
    """
    old = torch.full((states,), torch.nan, dtype=torch.float64)

    def first(taken: Tensor, advantage: Tensor, part: slice) -> Tensor:
        old[part] = taken.detach().double()
        return later(taken, advantage, part)

    def later(taken: Tensor, advantage: Tensor, part: slice) -> Tensor:
        return clipped_surrogate(taken, old[part], advantage, clip)

    statistics = step(first)
    for _ in range(epochs - 1):
        step(later)
    return statistics
