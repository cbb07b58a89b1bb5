"""ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.kind import AgentKind
from placeto.models.settings import OneShotNetworkConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.agent import Agent, Teacher


def _make(
    problems: Sequence[PlacementProblem],
    config: ColocRLConfig,
    evaluate: Evaluator,
    teacher: "Teacher | None",
) -> "Agent[Any]":
    from placeto.models.colocrl.agent import ColocRLAgent

    return ColocRLAgent(problems, config, evaluate)


KIND = AgentKind(
    name="colocrl",
    config=ColocRLConfig,
    network=OneShotNetworkConfig,
    make=_make,
)
