"""Settings of the training of the paper of 2019."""

import math
from dataclasses import dataclass
from typing import Literal

from placeto.envs.rules import EpisodeRules
from placeto.models.settings import LearningConfig
from placeto.support.errors import PlacetoError


@dataclass(frozen=True)
class Placeto2019Config(LearningConfig):
    """Settings of Placeto's training (Addanki et al. 2019, arXiv:1906.08879).

    Attributes:
        reward: `improvement` or `terminal`, as in `DevicePlacement-v0`.
        initial_placement: `first`, `random` or `expert`.
        sweeps: how often an episode goes through the groups.
        traversal: `topological` or `random` order of the groups.
        width: of the policy's embeddings.
        passing: how messages pass: `rounds`, `sweep` or `none`.
        rounds: how many rounds of messages.
        pooling: `partition` or `all`.
        keep: what the logit of a group's present device is raised by before training.
    """

    agent = "placeto-2019"

    reward: Literal["improvement", "terminal"] = "improvement"
    initial_placement: Literal["first", "random", "expert"] = "first"
    sweeps: int = 1
    traversal: Literal["topological", "random"] = "topological"
    width: int = 16
    passing: Literal["rounds", "sweep", "none"] = "rounds"
    rounds: int = 8
    pooling: Literal["partition", "all"] = "partition"
    keep: float = 3.0

    @property
    def rules(self) -> EpisodeRules:
        """What episodes are played by."""
        return EpisodeRules(
            initial_placement=self.initial_placement,
            reward=self.reward,
            memory_penalty=self.memory_penalty,
            sweeps=self.sweeps,
            traversal=self.traversal,
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.keep):
            raise PlacetoError(f"keep is {self.keep!r}, expected a finite number")
