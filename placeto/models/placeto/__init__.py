"""Placeto: sweeps that improve a placement, for any graph on any cluster, with one network."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeto.models.kind import AgentKind
from placeto.models.placeto.settings import PlacetoConfig, PlacetoNetworkConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.agent import Agent, Teacher
    from placeto.models.network import Network
    from placeto.models.placeto.network import PlacetoPolicy
    from placeto.models.placeto.play import CompiledPolicy
    from placeto.models.stored import StoredPolicy


def _make(
    problems: Sequence[PlacementProblem],
    config: PlacetoConfig,
    evaluate: Evaluator,
    teacher: "Teacher | None",
) -> "Agent[Any]":
    from placeto.models.placeto.agent import PlacetoAgent

    return PlacetoAgent(problems, config, evaluate, teacher)


def _load(stored: "StoredPolicy") -> "Network":
    from placeto.models.placeto.network import PlacetoPolicy

    return PlacetoPolicy.of(stored)


def _guide(policy: "PlacetoPolicy", problem: PlacementProblem) -> "CompiledPolicy":
    return policy.guide(problem)


KIND = AgentKind(
    name="placeto",
    config=PlacetoConfig,
    network=PlacetoNetworkConfig,
    make=_make,
    load=_load,
    any_cluster=True,
    guide=_guide,
    imitates=True,
    reads_schedules=True,
)
