"""Networks: graph embedding, sequence-to-sequence, and policies."""

from placeto.models.policy import PlacetoPolicy, PolicyConfig
from placeto.models.structure import Structure, structure

__all__ = ["PlacetoPolicy", "PolicyConfig", "Structure", "structure"]
