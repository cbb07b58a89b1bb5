"""Simulated annealing over placements."""

from pathlib import Path

from placeto.jit import drop_stale_kernels
from placeto.placers.annealing.config import AnnealingConfig
from placeto.placers.annealing.search import anneal

drop_stale_kernels(Path(__file__).parent)

__all__ = ["AnnealingConfig", "anneal"]
