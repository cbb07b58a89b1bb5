"""Settings of ColocRL's training."""

from dataclasses import dataclass

from placeto.models.settings import OneShotConfig


@dataclass(frozen=True)
class ColocRLConfig(OneShotConfig):
    """Settings of ColocRL's training."""

    agent = "colocrl"

    baseline_episodes: int = 64
