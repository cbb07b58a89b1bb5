"""One update of a policy from episodes: by REINFORCE (Williams 1992), or by PPO.

PPO is proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347) without a critic: the
advantages are REINFORCE's, returns less a baseline, the same in every epoch. An epoch is one
gradient step on all states, where the paper takes minibatches of them. In the first all ratios are
1, and its step is REINFORCE's.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from placeto.support.arrays import Floats
from placeto.support.errors import PlacetoError
from placeto.support.threads import in_threads, one_thread_an_operation


@dataclass(frozen=True)
class UpdateStatistics:
    """What the first epoch of an update looked like.

    Attributes:
        entropy: mean entropy of the policy that played over the states, in nats.
        gradient_norm: before clipping.
    """

    entropy: float
    gradient_norm: float


@one_thread_an_operation()
def update(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    terms: Callable[[slice], tuple[Tensor, Tensor]],
    parts: Sequence[slice],
    advantages: Floats,
    *,
    entropy_bonus: float,
    gradient_norm: float,
    epochs: int = 1,
    clip: float = torch.inf,
    tick: Callable[[], None] = lambda: None,
) -> UpdateStatistics:
    """Makes what was done in some episodes likelier, or less so, by its advantage.

    Args:
        network: changed in place.
        optimizer: of its parameters.
        terms: log-probability of what was done in each of some states, and the entropy there.
        parts: states, each in one part; several parts are computed at once.
        advantages: (steps, episodes) of what was done; divided here by their standard deviation.
        entropy_bonus: weight of the entropy.
        gradient_norm: what the gradient is clipped to.
        epochs: gradient steps; the second and later are PPO's.
        clip: see `clipped_surrogate`.
        tick: called after every part of the states; what it raises leaves the network as it was
            before the present epoch.

    Raises:
        PlacetoError: a gradient is not finite; the network is left as it was before that epoch.
    """
    spread = float(advantages.std())
    advantage = torch.from_numpy(advantages / spread if spread > 0 else advantages).flatten()
    states = len(advantage)
    parameters = list(network.parameters())
    old = torch.full((states,), torch.nan, dtype=torch.float64)
    first: UpdateStatistics | None = None

    def gradient_of(part: slice) -> tuple[float, tuple[Tensor, ...]]:
        taken, uncertainties = terms(part)
        uncertainty = uncertainties.sum()
        if first is None:
            old[part] = taken.detach().double()
            gain = taken * advantage[part]
        else:
            gain = clipped_surrogate(taken, old[part], advantage[part], clip)
        loss = -gain.sum() - entropy_bonus * uncertainty
        return float(uncertainty.detach()), torch.autograd.grad(loss / states, parameters)

    for _ in range(epochs):
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
        first = first or UpdateStatistics(entropy / states, float(norm))
    assert first is not None
    return first


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
