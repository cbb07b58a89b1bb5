"""The hierarchical planner (Mirhoseini et al., ICLR 2018)."""

from placeto.models.hierarchical.settings import HierarchicalConfig, HierarchicalNetworkConfig
from placeto.models.kind import AgentKind

KIND = AgentKind(
    HierarchicalConfig, HierarchicalNetworkConfig, f"{__name__}.agent:HierarchicalAgent"
)
