"""Training policies: rollouts, REINFORCE, PPO, checkpoints."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeto.jit import drop_stale_kernels
from placeto.training.config import TrainingConfig

if TYPE_CHECKING:
    from placeto.training.checkpoint import load_policy, save_policy
    from placeto.training.run import train
    from placeto.training.trainer import Trainer, UpdateReport

drop_stale_kernels(Path(__file__).parent, "simulation", "features", "models")

# Loaded when first asked for: the settings are free of torch, for `placeto train --help`.
_HOMES = {
    "Trainer": "trainer",
    "UpdateReport": "trainer",
    "load_policy": "checkpoint",
    "save_policy": "checkpoint",
    "train": "run",
}

__all__ = [
    "Trainer",
    "TrainingConfig",
    "UpdateReport",
    "load_policy",
    "save_policy",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'placeto.training' has no attribute {name!r}")
    return getattr(importlib.import_module(f"placeto.training.{_HOMES[name]}"), name)
