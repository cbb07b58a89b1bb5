"""Networks that can be saved and made again."""

from typing import Any, Protocol

from torch import nn


class Shape(Protocol):
    """What a network is made from."""

    def to_document(self) -> dict[str, Any]:
        """The shape as JSON."""


class Network(nn.Module):
    """A network that knows its shape.

    Attributes:
        config: with which another one of the same shape can be made.
    """

    config: Shape
