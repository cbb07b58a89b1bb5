"""How placers are configured, free of torch: the registry shows it before anything is trained."""

from dataclasses import dataclass
from typing import Literal

from placeto.placers.annealing.config import AnnealingConfig
from placeto.placers.settings import Configurable
from placeto.training.config import ColocRLConfig, HierarchicalConfig, TrainingConfig

# Schedules follow the clock, the seed comes of the placer's generator, and no run is left.
BY_THE_PLACER = ("updates", "seed", "checkpoint_every")


@dataclass(frozen=True)
class PlacetoConfig(TrainingConfig):
    """Settings of the placer `placeto`: of a training that is short.

    Attributes:
        initial_placement: where episodes start: `best` (at first the best of one device, the
            expert's and earliest finish; then the best that was met) or, throughout, `first`,
            `random` or `expert`.
    """

    episodes: int = 8
    baseline_episodes: int = 16
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-4
    entropy_bonus: float = 0.05
    rounds: int = 2
    initial_placement: Literal["best", "first", "random", "expert"] = "best"  # type: ignore[assignment]


ANNEALING = Configurable(AnnealingConfig())
COLOCRL = Configurable(ColocRLConfig(), BY_THE_PLACER)
HIERARCHICAL = Configurable(HierarchicalConfig(), BY_THE_PLACER)
PLACETO = Configurable(PlacetoConfig(), BY_THE_PLACER)
