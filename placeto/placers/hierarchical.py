"""The hierarchical planner: a grouper and a placer trained on the graph that they place."""

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import place_at_once
from placeto.training.config import HierarchicalConfig

ENOUGH_GROUPS = 64


def place_hierarchical(
    incumbent: Incumbent, rng: np.random.Generator, config: HierarchicalConfig
) -> None:
    """Trains the agent of the hierarchical planner (Mirhoseini et al., ICLR 2018) on the problem.

    What the grouper puts into clusters are the problem's groups; with the grouping none they are
    ops, as in the paper. Arguments and errors are those of `place_at_once`.
    """
    place_at_once(incumbent, rng, config, ENOUGH_GROUPS)
