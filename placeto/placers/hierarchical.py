"""The hierarchical planner: a grouper and a placer trained on the graph that they place."""

from dataclasses import replace

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import for_few_groups, how_many_trainings, train_until_spent
from placeto.training.config import HierarchicalConfig
from placeto.training.trainer import check_size

ENOUGH_GROUPS = 64


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
    groups = incumbent.problem.num_groups
    config = for_few_groups(config, groups, ENOUGH_GROUPS)
    config = replace(config, seed=int(rng.integers(2**31)))
    train_until_spent(incumbent, config, how_many_trainings(groups))
