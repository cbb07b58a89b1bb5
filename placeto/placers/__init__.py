"""Placers: everything that turns a problem into a placement, in one registry."""

from placeto.placers.base import Incumbent, NotApplicable
from placeto.placers.registry import PLACERS, Placer, place

__all__ = ["PLACERS", "Incumbent", "NotApplicable", "Placer", "place"]
