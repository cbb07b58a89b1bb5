"""Placeto as in its paper (Addanki et al. 2019, arXiv:1906.08879), with its ablations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeto.models.kind import AgentKind
from placeto.models.placeto_2019.settings import Placeto2019Config, Placeto2019NetworkConfig
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator

if TYPE_CHECKING:  # torch is slow to import
    from placeto.models.agent import Agent, Teacher
    from placeto.models.network import Network
    from placeto.models.stored import StoredPolicy


def _make(
    problems: Sequence[PlacementProblem],
    config: Placeto2019Config,
    evaluate: Evaluator,
    teacher: "Teacher | None",
) -> "Agent[Any]":
    from placeto.models.placeto_2019.agent import Placeto2019Agent

    return Placeto2019Agent(problems, config, evaluate)


def _load(stored: "StoredPolicy") -> "Network":
    from placeto.models.placeto_2019.network import Placeto2019Policy

    return Placeto2019Policy.of(stored)


KIND = AgentKind(
    name="placeto-2019",
    config=Placeto2019Config,
    network=Placeto2019NetworkConfig,
    make=_make,
    load=_load,
)
