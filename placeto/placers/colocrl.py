"""ColocRL: a sequence-to-sequence network trained on the graph that it places."""

from dataclasses import replace

import numpy as np

from placeto.placers.base import Incumbent
from placeto.placers.learned import for_few_groups, how_many_trainings, train_until_spent
from placeto.training.config import ColocRLConfig
from placeto.training.trainer import check_size

ENOUGH_GROUPS = 32


def place_colocrl(incumbent: Incumbent, rng: np.random.Generator, config: ColocRLConfig) -> None:
    """Trains ColocRL's agent (Mirhoseini et al. 2017, arXiv:1706.04972) on the problem.

    The agent places the groups as the problem has them. Its schedules follow the clock. Where the
    paper has up to 20 controllers that train asynchronously with 4 to 8 workers each, here one
    controller draws several placements at once; of few groups, more than configured (see
    `for_few_groups`).

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
