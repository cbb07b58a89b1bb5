"""Heuristics, a trained policy, and a search that it guides."""

from pathlib import Path

from placeto.jit import drop_stale_kernels
from placeto.placers.auto.config import AutoConfig

drop_stale_kernels(
    Path(__file__).parent, "simulation", "features", "models", "training", "placers/annealing"
)

__all__ = ["AutoConfig"]
