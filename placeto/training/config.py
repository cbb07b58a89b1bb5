"""What a training run is told."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from placeto.errors import PlacetoError


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of REINFORCE as in Placeto (Addanki et al. 2019, arXiv:1906.08879).

    Attributes:
        updates: gradient steps of the whole run; schedules go from their first value to their
            last over these.
        episodes: episodes that run at once and make one gradient step, all of one problem.
        seed: where all random numbers start.
        learning_rate: of Adam, first value.
        final_learning_rate: of Adam, last value; linear between.
        entropy_bonus: weight of the policy's entropy, first value; linear to 0.
        baseline_episodes: the baseline of step t is the mean return from step t on of the last so
            many episodes of the problem, the present ones included.
        gradient_norm: what gradients are clipped to.
        reward: `improvement` or `terminal`, as in `DevicePlacement-v0`.
        memory_penalty: seconds a GiB over a device's memory.
        initial_placement: `first`, `random` or `expert`.
        sweeps: how often an episode goes through the groups.
        traversal: `topological` or `random` order of the groups.
        width: of the policy's embeddings.
        passing: how messages pass: `rounds`, `sweep` or `none`.
        rounds: how many rounds of messages.
        pooling: `partition` or `all`.
        keep: what the logit of a group's present device is raised by before training.
        checkpoint_every: updates between two checkpoints.
    """

    updates: int = 200
    episodes: int = 16
    seed: int = 0
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    entropy_bonus: float = 0.01
    baseline_episodes: int = 16
    gradient_norm: float = 1.25
    reward: Literal["improvement", "terminal"] = "improvement"
    memory_penalty: float = 2.0
    initial_placement: Literal["first", "random", "expert"] = "first"
    sweeps: int = 1
    traversal: Literal["topological", "random"] = "topological"
    width: int = 16
    passing: Literal["rounds", "sweep", "none"] = "rounds"
    rounds: int = 8
    pooling: Literal["partition", "all"] = "partition"
    keep: float = 3.0
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        for name in (
            "updates", "episodes", "baseline_episodes", "sweeps", "width", "rounds",
            "checkpoint_every",
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise PlacetoError(f"{name} is {value!r}, expected a whole number from 1")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise PlacetoError(f"seed is {self.seed!r}, expected a whole number from 0, below 2^63")
        for name in ("learning_rate", "final_learning_rate", "gradient_norm"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise PlacetoError(f"{name} is {value!r}, expected more than 0")
        for name in ("entropy_bonus", "memory_penalty"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise PlacetoError(f"{name} is {value!r}, expected 0 or more")
        if not math.isfinite(self.keep):
            raise PlacetoError(f"keep is {self.keep!r}, expected a finite number")
        for name, known in get_type_hints(type(self)).items():
            if get_origin(known) is Literal and getattr(self, name) not in get_args(known):
                choices = ", ".join(get_args(known))
                raise PlacetoError(f"{name} is {getattr(self, name)!r}, expected one of {choices}")

    def to_document(self) -> dict[str, Any]:
        """The configuration as JSON."""
        return asdict(self)
