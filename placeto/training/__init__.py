"""Training any agent: rollouts, REINFORCE, PPO, runs that survive a kill."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placeto.models.stored import load_policy, save_policy
    from placeto.training.run import train
    from placeto.training.trainer import Trainer, UpdateReport

# Loaded when first asked for: torch is slow to import.
_HOMES = {
    "Trainer": "training.trainer",
    "UpdateReport": "training.trainer",
    "load_policy": "models.stored",
    "save_policy": "models.stored",
    "train": "training.run",
}

__all__ = ["Trainer", "UpdateReport", "load_policy", "save_policy", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'placeto.training' has no attribute {name!r}")
    return getattr(importlib.import_module(f"placeto.{_HOMES[name]}"), name)
