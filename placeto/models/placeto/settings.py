"""Settings of Placeto's training."""

from dataclasses import dataclass
from typing import Literal

from placeto.envs.features.pairs import PAIR_FEATURES
from placeto.models.placeto.pools import SUMS
from placeto.models.settings import LearningConfig, Settings
from placeto.support.errors import PlacetoError


@dataclass(frozen=True)
class PlacetoNetworkConfig(Settings):
    """What makes Placeto's network.

    Attributes:
        hidden: width of the two layers that score a pair.
        embedding: length of a group's embedding.
        width: of the layers that make the embedding.
        passing: `rounds` (messages among all groups), or `none` (a group's own attributes).
        rounds: how many.
        pooling: `devices` (over the groups on each device in the present placement), or `none`.
        heads: how many affinities of two groups weight what is pooled.
        rank: length of what is made of each group for a head.
    """

    hidden: int = 64
    embedding: int = 16
    width: int = 32
    passing: Literal["rounds", "none"] = "rounds"
    rounds: int = 4
    pooling: Literal["devices", "none"] = "devices"
    heads: int = 8
    rank: int = 4

    @property
    def num_rounds(self) -> int:
        """How many there are."""
        return self.rounds if self.passing == "rounds" else 0

    @property
    def num_heads(self) -> int:
        """How many there are."""
        return self.heads if self.pooling == "devices" else 0

    @property
    def pair_columns(self) -> int:
        """Of what is seen of a group and a device, with what is pooled."""
        return PAIR_FEATURES + SUMS * self.num_heads


@dataclass(frozen=True)
class PlacetoConfig(PlacetoNetworkConfig, LearningConfig):
    """Settings of Placeto's training.

    Attributes:
        imitation: share of the updates, the first ones, that imitate placements found by search.
        lessons: how many are prepared for each problem; an update that imitates takes one.
        disturbed_lessons: episodes of a lesson that begin near the placement that is imitated; one
            more begins on one device.
        sweeps: how often an episode of reinforcement goes through the groups.
    """

    agent = "placeto"

    updates: int = 1000
    learning_rate: float = 2e-3
    entropy_bonus: float = 0.02
    algorithm: Literal["reinforce", "ppo"] = "ppo"
    checkpoint_every: int = 200
    gradient_norm: float = 1.0
    imitation: float = 0.375
    lessons: int = 4
    disturbed_lessons: int = 3
    sweeps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.imitation <= 1:
            raise PlacetoError(f"imitation is {self.imitation!r}, expected from 0 to 1")
