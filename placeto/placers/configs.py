"""How placers are configured, free of torch: the registry shows it before anything is trained."""

from dataclasses import dataclass
from typing import Literal

from placeto.errors import PlacetoError
from placeto.placers.annealing.config import AnnealingConfig
from placeto.placers.auto.config import NO_POLICY, AutoConfig
from placeto.placers.settings import Configurable
from placeto.training.config import ColocRLConfig, HierarchicalConfig, TrainingConfig

# Of the policies that ship, and as many groups as that has learned with.
DEFAULT_POLICY = "pairwise"
COARSE_GROUPS = AutoConfig.coarse_groups

# Schedules follow the clock, the seed comes of the placer's generator, and no run is left.
BY_THE_PLACER = ("updates", "seed", "checkpoint_every")


@dataclass(frozen=True)
class PlacetoConfig(TrainingConfig):
    """Settings of the placer `placeto`: of a training that is short.

    Attributes:
        policy: a run directory of `placeto train` whose policy is trained further; its network is
            as it was made, whatever the settings of it say. `none` to begin with a fresh one.
        initial_placement: where episodes start: `best` (at first the best of one device, the
            expert's and earliest finish; then the best that was met) or, throughout, `first`,
            `random` or `expert`.
    """

    policy: str = NO_POLICY
    episodes: int = 8
    baseline_episodes: int = 16
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-4
    entropy_bonus: float = 0.05
    rounds: int = 2
    initial_placement: Literal["best", "first", "random", "expert"] = "best"  # type: ignore[assignment]


@dataclass(frozen=True)
class PairwisePlacerConfig:
    """Settings of the placer `pairwise`.

    Attributes:
        policy: a run directory or a bundled policy.
        samples: episodes with drawn devices at once, of four sweeps each; 0 to take the likeliest
            devices only.
        batches: of samples; 0 until the budget ends, with fewer samples where these would take
            long.
        coarse_groups: of more groups than this, several are placed together; the best such
            placement is refined by sweeps over the groups as they are.
    """

    policy: str = DEFAULT_POLICY
    samples: int = 16
    batches: int = 0
    coarse_groups: int = COARSE_GROUPS

    def __post_init__(self) -> None:
        for name, least in (("samples", 0), ("batches", 0), ("coarse_groups", 1)):
            if getattr(self, name) < least:
                raise PlacetoError(f"{name} is {getattr(self, name)}, expected {least} or more")


ANNEALING = Configurable(AnnealingConfig())
AUTO = Configurable(AutoConfig())
COLOCRL = Configurable(ColocRLConfig(), BY_THE_PLACER)
HIERARCHICAL = Configurable(HierarchicalConfig(), BY_THE_PLACER)
PLACETO = Configurable(PlacetoConfig(), BY_THE_PLACER)
PAIRWISE = Configurable(PairwisePlacerConfig())
