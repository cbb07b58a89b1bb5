"""Networks: graph embedding and policies."""

from placeto.models.policy import PlacetoPolicy, PolicyConfig, Structure, structure

__all__ = ["PlacetoPolicy", "PolicyConfig", "Structure", "structure"]
