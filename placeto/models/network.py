"""Networks that can be saved and made again, what they are made of, and choices among devices."""

import itertools
from collections.abc import Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from placeto.models.settings import Settings
from placeto.models.stored import StoredPolicy
from placeto.support.errors import PlacetoError


class Network(nn.Module):
    """A network that knows its shape."""

    agent: ClassVar[str]  # the name of the agent that it is a policy of; see `models.agents`
    shape: ClassVar[type[Settings]]  # the class of `config`
    config: Settings  # with which another one of the same shape can be made

    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def of(cls, stored: StoredPolicy) -> Self:
        """The network of a stored policy.

        Raises:
            PlacetoError: its card and its weights do not fit together.
        """
        policy = cls(stored.shape(cls.shape))
        try:
            policy.load_state_dict({name: torch.tensor(a) for name, a in stored.arrays.items()})
        except RuntimeError as error:
            line = " ".join(str(error).split())
            raise PlacetoError(
                f"{stored.source}: not the weights of policy.json: {line}"
            ) from error
        return policy


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers with ReLU between them; none after the last.

    Weights are drawn so that ReLU keeps their scale (He et al. 2015, arXiv:1502.01852): the
    embedding is a dozen layers deep, and with a smaller scale every group looks the same.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        nn.init.kaiming_uniform_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


def function(width: int) -> nn.Sequential:
    """A function f or g of Placeto's sums: two linear layers, ReLU after each."""
    return nn.Sequential(*mlp([width, width, width]), nn.ReLU(inplace=True))


def side_by_side(networks: Sequence[nn.Sequential]) -> nn.Sequential:
    """Networks of one shape as one, for as many inputs, that computes them in as few operations.

    Args:
        networks: linear layers of one width and ReLUs; their weights are copied.
    """
    layers: list[nn.Module] = []
    for same in zip(*networks, strict=True):
        linear = isinstance(same[0], nn.Linear)
        layers.append(StackedLinear(same) if linear else nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


class StackedLinear(nn.Module):
    r"""Linear layers of one width side by side: :math:`y_k = x_k W_k^T + b_k`.

    Shapes:
        inputs: (count, rows, width)
        output: (count, rows, width)
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach() for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))

    def forward(self, x: Tensor) -> Tensor:
        """Applies each layer to its own rows."""
        return torch.baddbmm(self.bias, x, self.weight.transpose(1, 2))


def masked(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits with those of devices that are not allowed at minus infinity."""
    return logits.masked_fill(~allowed, -torch.inf)


def entropy(log: Tensor) -> Tensor:
    """Entropy of each row of log-probabilities; impossible choices count nothing."""
    return -(log.exp() * log.masked_fill(log == -torch.inf, 0)).sum(dim=-1)
