"""Networks that can be saved and made again."""

from typing import Any, ClassVar, Protocol

import torch
from torch import nn

from placeto.models.stored import StoredPolicy
from placeto.support.errors import PlacetoError


class Shape(Protocol):
    """What a network is made from."""

    def to_document(self) -> dict[str, Any]:
        """The shape as JSON."""


class Network(nn.Module):
    """A network that knows its shape.

    Attributes:
        agent: the name of the agent that it is a policy of; see `models.agents`.
        config: with which another one of the same shape can be made.
    """

    agent: ClassVar[str]
    config: Shape

    def load(self, stored: StoredPolicy) -> None:
        """Takes the weights of a stored policy.

        Raises:
            PlacetoError: they are those of another shape.
        """
        try:
            self.load_state_dict({name: torch.tensor(a) for name, a in stored.arrays.items()})
        except RuntimeError as error:
            line = " ".join(str(error).split())
            raise PlacetoError(
                f"{stored.source}: not the weights of policy.json: {line}"
            ) from error
