"""Settings of the training of the paper of 2019."""

import math
from dataclasses import dataclass
from typing import Literal

from placeto.envs.rules import EpisodeRules
from placeto.models.settings import LearningConfig, Settings
from placeto.support.errors import PlacetoError


@dataclass(frozen=True)
class Placeto2019NetworkConfig(Settings):
    """What makes the network, whatever the cluster.

    Attributes:
        width: of the embeddings, in each of the two directions.
        passing: `rounds` (messages among all nodes), `sweep` (one pass along the topological
            order), or `none` (no messages: the "simple aggregator").
        rounds: how many rounds.
        pooling: `partition` (over ancestors, descendants and parallel nodes apart) or `all` (over
            all nodes at once: the "simple partitioner").
        keep: what the logit of the group's present device is raised by before training; learned
            from there on. 0 is the paper's.
    """

    width: int = 16
    passing: Literal["rounds", "sweep", "none"] = "rounds"
    rounds: int = 8
    pooling: Literal["partition", "all"] = "partition"
    keep: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.keep):
            raise PlacetoError(f"keep is {self.keep!r}, expected a finite number")


@dataclass(frozen=True)
class Placeto2019Config(Placeto2019NetworkConfig, LearningConfig):
    """Settings of Placeto's training (Addanki et al. 2019, arXiv:1906.08879).

    Attributes:
        reward: `improvement` or `terminal`, as in `DevicePlacement-v0`.
        initial_placement: `first`, `random` or `expert`.
        sweeps: how often an episode goes through the groups.
        traversal: `topological` or `random` order of the groups.
    """

    agent = "placeto-2019"

    reward: Literal["improvement", "terminal"] = "improvement"
    initial_placement: Literal["first", "random", "expert"] = "first"
    sweeps: int = 1
    traversal: Literal["topological", "random"] = "topological"

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
