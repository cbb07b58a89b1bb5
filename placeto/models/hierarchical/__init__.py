"""The hierarchical planner (Mirhoseini et al., ICLR 2018)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeto.models.hierarchical.settings import HierarchicalConfig, HierarchicalNetworkConfig
from placeto.models.kind import AgentKind
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.agent import Agent, Teacher


def _make(
    problems: Sequence[PlacementProblem],
    config: HierarchicalConfig,
    evaluate: Evaluator,
    teacher: "Teacher | None",
) -> "Agent[Any]":
    from placeto.models.hierarchical.agent import HierarchicalAgent

    return HierarchicalAgent(problems, config, evaluate)


KIND = AgentKind(
    name="hierarchical",
    config=HierarchicalConfig,
    network=HierarchicalNetworkConfig,
    make=_make,
)
