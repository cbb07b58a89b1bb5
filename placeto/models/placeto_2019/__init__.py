"""Placeto as in its paper (Addanki et al. 2019, arXiv:1906.08879), with its ablations."""

from placeto.models.kind import AgentKind
from placeto.models.placeto_2019.settings import Placeto2019Config, Placeto2019NetworkConfig

KIND = AgentKind(
    Placeto2019Config,
    Placeto2019NetworkConfig,
    f"{__name__}.agent:Placeto2019Agent",
    f"{__name__}.network:Placeto2019Policy",
)
