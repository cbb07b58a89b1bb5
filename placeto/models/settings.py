"""Settings: what all have in common, those of learning, and those of agents that place at once."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from placeto.support.errors import PlacetoError


@dataclass(frozen=True)
class Settings:
    """Frozen fields, checked by their types; an agent's are put together of several of these.

    Raises:
        PlacetoError: a whole number below 1 that is no seed, or none of the strings of a `Literal`.
    """

    def __post_init__(self) -> None:
        for name, known in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if known is int and name != "seed" and (not isinstance(value, int) or value < 1):
                raise PlacetoError(f"{name} is {value!r}, expected a whole number from 1")
            if get_origin(known) is Literal and value not in get_args(known):
                choices = ", ".join(get_args(known))
                raise PlacetoError(f"{name} is {value!r}, expected one of {choices}")

    def part(self, kind: "type[Settings]") -> dict[str, Any]:
        """Those that are fields of another class, by their names."""
        return {field.name: getattr(self, field.name) for field in fields(kind)}

    def to_document(self) -> dict[str, Any]:
        """All of them as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class LearningConfig(Settings):
    """Settings of REINFORCE and PPO that every agent has.

    Attributes:
        agent: whose settings they are; see `models.agents`.
        updates: of the whole run; schedules go from their first value to their last over these.
        episodes: episodes that run at once and make one update, all of one problem.
        seed: where all random numbers start.
        learning_rate: of Adam, first value.
        final_learning_rate: of Adam, last value; linear between.
        entropy_bonus: weight of the policy's entropy, first value; linear to 0.
        algorithm: `reinforce` (one gradient step an update) or `ppo` (several, up the clipped
            surrogate objective of Schulman et al. 2017, with the same advantages: no critic).
        epochs: gradient steps an update of `ppo`, each on all of its episodes.
        clip: how far `ppo` follows the ratio of new to old probabilities away from 1.
        baseline: what returns from step t on are compared with: `recent` (their mean over the
            last `baseline_episodes` episodes of the problem, the present ones included) or
            `moving` (their exponential moving average over earlier updates).
        baseline_episodes: how many episodes a `recent` baseline is of.
        baseline_decay: how much of a `moving` baseline an update leaves.
        gradient_norm: what gradients are clipped to.
        memory_penalty: seconds a GiB over a device's memory.
        checkpoint_every: updates between two checkpoints.
    """

    agent: ClassVar[str]

    updates: int = 200
    episodes: int = 16
    seed: int = 0
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    entropy_bonus: float = 0.01
    algorithm: Literal["reinforce", "ppo"] = "reinforce"
    epochs: int = 4
    clip: float = 0.2
    baseline: Literal["recent", "moving"] = "recent"
    baseline_episodes: int = 16
    baseline_decay: float = 0.9
    gradient_norm: float = 1.25
    memory_penalty: float = 2.0
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise PlacetoError(f"seed is {self.seed!r}, expected a whole number from 0, below 2^63")
        for name in ("learning_rate", "final_learning_rate", "gradient_norm"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise PlacetoError(f"{name} is {value!r}, expected more than 0")
        for name in ("entropy_bonus", "memory_penalty"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise PlacetoError(f"{name} is {value!r}, expected 0 or more")
        if not 0 < self.clip < 1:
            raise PlacetoError(f"clip is {self.clip!r}, expected more than 0, below 1")
        if not 0 <= self.baseline_decay < 1:
            raise PlacetoError(
                f"baseline_decay is {self.baseline_decay!r}, expected 0 or more, below 1"
            )


@dataclass(frozen=True)
class OneShotNetworkConfig(Settings):
    """What makes the network of an agent that places all groups at once.

    Attributes:
        width: of the embeddings of op types, of hidden layers, and of the encoder in each
            direction.
    """

    width: int = 32


@dataclass(frozen=True)
class OneShotConfig(OneShotNetworkConfig, LearningConfig):
    """Settings of the agents of Mirhoseini et al. (2017, arXiv:1706.04972; 2018).

    The entropy is that of one choice on average: of many choices, each has a small part in the
    reward, and with their sum it would be lost against the bonus. The papers' moving average is
    taken over the last episodes: an exponential one lags while rewards rise, so that all of an
    update's placements become likelier together, until there is one device left.
    """

    learning_rate: float = 1e-2
    final_learning_rate: float = 1e-3
    entropy_bonus: float = 2.0
    gradient_norm: float = 1.0
