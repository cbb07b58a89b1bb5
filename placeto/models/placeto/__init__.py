"""Placeto: sweeps that improve a placement, for any graph on any cluster, with one network."""

from typing import TYPE_CHECKING

from placeto.models.kind import AgentKind
from placeto.models.placeto.settings import PlacetoConfig, PlacetoNetworkConfig
from placeto.problem import PlacementProblem

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.placeto.network import PlacetoPolicy
    from placeto.models.placeto.play import CompiledPolicy


def _guide(policy: "PlacetoPolicy", problem: PlacementProblem) -> "CompiledPolicy":
    return policy.guide(problem)


KIND = AgentKind(
    PlacetoConfig,
    PlacetoNetworkConfig,
    f"{__name__}.agent:PlacetoAgent",
    f"{__name__}.network:PlacetoPolicy",
    any_cluster=True,
    guide=_guide,
    imitates=True,
    reads_schedules=True,
)
