"""Placements: what they are, their file, and what they become in TensorFlow and PyTorch."""

from placeto.placement.placement import Placement, load_placement

__all__ = ["Placement", "load_placement"]
