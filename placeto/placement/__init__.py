"""Placements: what they are, their file, and what they become in TensorFlow and PyTorch."""

from typing import TYPE_CHECKING

from placeto.support.late import loaded_late

if TYPE_CHECKING:
    from placeto.placement.placement import Placement, load_placement

_HOMES = {"placement.placement": ("Placement", "load_placement")}

__all__ = ["Placement", "load_placement"]

__getattr__ = loaded_late(__name__, _HOMES)
