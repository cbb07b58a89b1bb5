"""ColocRL: a sequence-to-sequence network trained on the graph that it places."""

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import train_in_one_shot
from placeto.training.colocrl import ColocRLConfig
from placeto.training.trainer import check_size


def place_colocrl(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """Trains ColocRL's agent (Mirhoseini et al. 2017, arXiv:1706.04972) on the problem.

    The agent places the groups as the problem has them. Its schedules follow the clock. Where the
    paper has up to 20 controllers that train asynchronously with 4 to 8 workers each, here one
    controller draws several placements at once.

    Raises:
        PlacetoError: more groups than the network can go through in reasonable time.
    """
    check_size(incumbent.problem)
    train_in_one_shot(incumbent, ColocRLConfig(seed=int(rng.integers(2**31))))
