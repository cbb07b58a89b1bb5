"""Networks that can be saved and made again."""

from typing import ClassVar, Self

import torch
from torch import nn

from placeto.models.settings import Settings
from placeto.models.stored import StoredPolicy
from placeto.support.errors import PlacetoError


class Network(nn.Module):
    """A network that knows its shape.

    Attributes:
        agent: the name of the agent that it is a policy of; see `models.agents`.
        shape: the class of what it is made from.
        config: with which another one of the same shape can be made.
    """

    agent: ClassVar[str]
    shape: ClassVar[type[Settings]]
    config: Settings

    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def of(cls, stored: StoredPolicy) -> Self:
        """The network of a stored policy.

        Raises:
            PlacetoError: its card and its weights do not fit together.
        """
        shape = {key: value for key, value in stored.card["policy"].items() if key != "kind"}
        try:
            policy = cls(cls.shape(**shape))
        except (TypeError, PlacetoError) as error:
            raise PlacetoError(f"{stored.source}: not a policy's shape: {error}") from error
        policy.load(stored)
        return policy

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
