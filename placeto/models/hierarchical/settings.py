"""Settings of the hierarchical planner's training."""

from dataclasses import dataclass

from placeto.models.settings import OneShotConfig, OneShotNetworkConfig


@dataclass(frozen=True)
class HierarchicalNetworkConfig(OneShotNetworkConfig):
    """What makes the network, whatever the problem.

    Attributes:
        clusters: how many sets of groups the grouper makes at most. The paper has 256, for tens of
            thousands of ops; these are made of groups that are fewer.
    """

    clusters: int = 32


@dataclass(frozen=True)
class HierarchicalConfig(HierarchicalNetworkConfig, OneShotConfig):
    """Settings of the hierarchical planner's training."""

    agent = "hierarchical"

    learning_rate: float = 3e-3
    entropy_bonus: float = 7.0
