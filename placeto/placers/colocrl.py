"""ColocRL: a sequence-to-sequence network trained on the graph that it places."""

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import place_at_once
from placeto.training.config import ColocRLConfig

ENOUGH_GROUPS = 32


def place_colocrl(incumbent: Incumbent, rng: np.random.Generator, config: ColocRLConfig) -> None:
    """Trains ColocRL's agent (Mirhoseini et al. 2017, arXiv:1706.04972) on the problem.

    The agent places the groups as the problem has them. Where the paper has up to 20 controllers
    that train asynchronously with 4 to 8 workers each, here one controller draws several placements
    at once. Arguments and errors are those of `place_at_once`.
    """
    place_at_once(incumbent, rng, config, ENOUGH_GROUPS)
