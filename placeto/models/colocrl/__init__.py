"""ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972)."""

from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.kind import AgentKind
from placeto.models.settings import OneShotNetworkConfig

KIND = AgentKind(ColocRLConfig, OneShotNetworkConfig, f"{__name__}.agent:ColocRLAgent")
