"""Simulated annealing over placements."""

from placeto.placers.annealing.config import AnnealingConfig
from placeto.placers.annealing.search import anneal

__all__ = ["AnnealingConfig", "anneal"]
