"""Placers: everything that turns a problem into a placement, in one registry."""

from placeto.placers.registry import PLACERS, Placer, place
from placeto.search.incumbent import Incumbent
from placeto.support.errors import NotApplicable

__all__ = ["PLACERS", "Incumbent", "NotApplicable", "Placer", "place"]
