"""The hierarchical planner: a grouper and a placer trained on the graph that they place."""

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import train_in_one_shot
from placeto.training.hierarchical import HierarchicalConfig
from placeto.training.trainer import check_size


def place_hierarchical(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Trains the agent of the hierarchical planner (Mirhoseini et al., ICLR 2018) on the problem.

    What the grouper puts into clusters are the problem's groups; with the grouping none they are
    ops, as in the paper. Its schedules follow the clock.

    Raises:
        PlacetoError: more groups than the network can go through in reasonable time.
    """
    check_size(incumbent.problem)
    train_in_one_shot(incumbent, HierarchicalConfig(seed=int(rng.integers(2**31))))
