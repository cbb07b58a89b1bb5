"""Which agent a configuration is of."""

from collections.abc import Sequence
from typing import Any

from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.training.agent import Agent
from placeto.training.colocrl import ColocRLAgent
from placeto.training.config import (
    ColocRLConfig,
    HierarchicalConfig,
    LearningConfig,
    PairwiseConfig,
    TrainingConfig,
)
from placeto.training.hierarchical import HierarchicalAgent
from placeto.training.lessons import Teacher
from placeto.training.pairwise import PairwiseAgent
from placeto.training.placeto import PlacetoAgent


def make_agent(
    problems: Sequence[PlacementProblem],
    config: LearningConfig,
    evaluate: Evaluator,
    teacher: Teacher | None = None,
) -> Agent[Any]:
    """An agent for some problems, its network drawn from torch's generator.

    Args:
        problems: what to place.
        config: how to train, and which agent.
        evaluate: turns placements into step times.
        teacher: for agents that imitate placements first.

    Raises:
        PlacetoError: it cannot be trained on these problems together.
    """
    match config:
        case TrainingConfig():
            return PlacetoAgent(problems, config, evaluate)
        case ColocRLConfig():
            return ColocRLAgent(problems, config, evaluate)
        case HierarchicalConfig():
            return HierarchicalAgent(problems, config, evaluate)
        case PairwiseConfig():
            return PairwiseAgent(problems, config, evaluate, teacher)
    raise TypeError(f"no agent is configured by {type(config).__name__}")
