"""The benchmark models of the papers, as training steps in TensorFlow."""

from collections.abc import Callable
from typing import Any

from placeto.zoo.nmt import nmt

MODELS: dict[str, Callable[..., Any]] = {"nmt": nmt}

__all__ = ["MODELS", "nmt"]
