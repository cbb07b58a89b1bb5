"""What a person would write down, per kind of model."""

import numpy as np

from placeto.initial import expert_placement
from placeto.placers.base import Incumbent


def place_expert(incumbent: Incumbent, rng: np.random.Generator) -> None:
    """The expert's placement; see `initial.expert_placement`."""
    incumbent.offer(expert_placement(incumbent.problem))
