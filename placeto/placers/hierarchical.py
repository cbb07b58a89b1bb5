"""The hierarchical planner: a grouper and a placer trained on the graph that they place."""

import math
from dataclasses import replace

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import train_until_spent
from placeto.training.config import HierarchicalConfig
from placeto.training.trainer import check_size

ENOUGH_GROUPS = 32


def place_hierarchical(
    incumbent: Incumbent, rng: np.random.Generator, config: HierarchicalConfig
) -> None:
    """Trains the agent of the hierarchical planner (Mirhoseini et al., ICLR 2018) on the problem.

    What the grouper puts into clusters are the problem's groups; with the grouping none they are
    ops, as in the paper. Its schedules follow the clock. Of few groups an update has more episodes
    than configured; see `for_few_groups`.

    Args:
        incumbent: what is offered to.
        rng: draws the seed of the training.
        config: settings.

    Raises:
        PlacetoError: more groups than the network can go through in reasonable time.
    """
    check_size(incumbent.problem)
    config = for_few_groups(config, incumbent.problem.num_groups)
    train_until_spent(incumbent, replace(config, seed=int(rng.integers(2**31))))


def for_few_groups(config: HierarchicalConfig, num_groups: int) -> HierarchicalConfig:
    """The configuration with more episodes an update where there are fewer than 32 groups.

    All of them together have the same number of groups then, and learning rate and entropy bonus
    go up with the square root of the number of episodes. They cost hardly more there; without them
    the policy often settles on one device.
    """
    more = max(ENOUGH_GROUPS / num_groups, 1)
    return replace(
        config,
        episodes=round(more * config.episodes),
        learning_rate=math.sqrt(more) * config.learning_rate,
        final_learning_rate=math.sqrt(more) * config.final_learning_rate,
        entropy_bonus=math.sqrt(more) * config.entropy_bonus,
    )
