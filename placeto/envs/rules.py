"""What an episode of `DevicePlacement-v0` is played by: its start, its length, its reward."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeto.heuristics.initial import InitialPlacement
from placeto.support.errors import PlacetoError


@dataclass(frozen=True, eq=False)
class EpisodeRules:
    """The arguments of the environment that shape its episodes; see `DevicePlacementEnv`.

    Raises:
        PlacetoError: a value that is not one of those.
    """

    initial_placement: InitialPlacement = "first"
    reward: Literal["improvement", "terminal"] = "improvement"
    reward_scale: Literal["relative", "seconds"] = "relative"
    memory_penalty: float = 2.0
    sweeps: int = 1
    traversal: Literal["topological", "random"] = "topological"

    def __post_init__(self) -> None:
        if isinstance(self.initial_placement, str):
            known = ("first", "random", "expert")
            check_choice("initial_placement", self.initial_placement, known)
        check_choice("reward", self.reward, ("improvement", "terminal"))
        check_choice("reward_scale", self.reward_scale, ("relative", "seconds"))
        check_choice("traversal", self.traversal, ("topological", "random"))
        check_count("sweeps", self.sweeps)
        if not 0 <= self.memory_penalty < np.inf:
            raise PlacetoError(
                f"memory_penalty is {self.memory_penalty!r}, expected seconds a GiB from 0"
            )


def check_count(name: str, value: object) -> None:
    """Raises a `PlacetoError` unless the argument `name` is a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise PlacetoError(f"{name} is {value!r}, expected a whole number from 1")


def check_choice(name: str, value: object, known: Sequence[object]) -> None:
    """Raises a `PlacetoError` unless the argument `name` has a value that is known."""
    if value not in known:
        raise PlacetoError(f"{name} is {value!r}, expected one of {', '.join(map(str, known))}")
