"""Training any agent: rollouts, REINFORCE, PPO, runs that survive a kill."""

from typing import TYPE_CHECKING

from placeto.support.late import loaded_late

if TYPE_CHECKING:
    from placeto.models.stored import load_policy, save_policy
    from placeto.training.run import train
    from placeto.training.trainer import Trainer, UpdateReport

_HOMES = {  # torch is slow to import
    "models.stored": ("load_policy", "save_policy"),
    "training.run": ("train",),
    "training.trainer": ("Trainer", "UpdateReport"),
}

__all__ = ["Trainer", "UpdateReport", "load_policy", "save_policy", "train"]

__getattr__ = loaded_late(__name__, _HOMES)
