"""Placers: everything that turns a problem into a placement, in one registry."""

from placeto.placers.base import Incumbent
from placeto.placers.registry import PLACERS, Placer, place

__all__ = ["PLACERS", "Incumbent", "Placer", "place"]
