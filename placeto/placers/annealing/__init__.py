"""Simulated annealing over placements."""

from placeto.placers.annealing.config import AnnealingConfig
from placeto.placers.annealing.search import anneal, place_annealing

__all__ = ["AnnealingConfig", "anneal", "place_annealing"]
