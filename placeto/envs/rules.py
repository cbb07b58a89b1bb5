"""What episodes of `DevicePlacement-v0` are played by: where they start, how long, for what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from placeto.heuristics.initial import InitialPlacement, initial_placement
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
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


Start = tuple[int, Ints, Ints]
"""Which problem, (num_groups,) devices, and (num_groups * sweeps,) the groups as visited."""


class Starts:
    """Draws the starts of episodes; remembers those placements that are always the same.

    Raises:
        PlacetoError: an initial placement that does not suit every problem.
    """

    def __init__(self, problems: Mapping[str, PlacementProblem], rules: EpisodeRules) -> None:
        self._names, self._problems = list(problems), list(problems.values())
        self._rules = rules
        self._fixed: dict[int, Ints] = {}
        if not isinstance(rules.initial_placement, str):
            for number in range(len(self._problems)):
                self._usual(number, np.random.default_rng(0))

    def draw(
        self, generators: Sequence[np.random.Generator], options: Mapping[str, Any]
    ) -> list[Start]:
        """One start a generator, which draws graph, placement and order, one after the other.

        Raises:
            PlacetoError: options of `reset` that cannot be used; generators may have drawn then.
        """
        for option in options:
            if option not in ("graph", "placement"):
                raise PlacetoError(f"unknown reset option {option!r}; known: graph, placement")
        name, placement = options.get("graph"), options.get("placement")
        if name is not None and name not in self._names:
            raise PlacetoError(f"no graph is called {name!r}; graphs: {', '.join(self._names)}")
        return [self._draw(rng, name, placement) for rng in generators]

    def _draw(self, rng: np.random.Generator, name: str | None, placement: Any) -> Start:
        names, sweeps = self._names, self._rules.sweeps
        number = int(rng.integers(len(names))) if name is None else names.index(name)
        problem = self._problems[number]
        groups = problem.num_groups
        if placement is None:
            devices = self._usual(number, rng)
        else:
            if isinstance(placement, np.ndarray) and placement.ndim == 1:
                padded = (placement[groups:] == -1).all()  # as `best_placement` of the info is
                placement = placement[:groups] if padded else placement
            devices = initial_placement(problem, placement, rng)
        if self._rules.traversal == "topological":
            return number, devices, np.tile(problem.group_order, sweeps)
        return number, devices, np.concatenate([rng.permutation(groups) for _ in range(sweeps)])

    def _usual(self, number: int, rng: np.random.Generator) -> Ints:
        problem, usual = self._problems[number], self._rules.initial_placement
        if isinstance(usual, str) and usual == "random":
            return initial_placement(problem, usual, rng)
        if number not in self._fixed:  # the expert's takes as long as a few dozen steps
            self._fixed[number] = initial_placement(problem, usual, rng)
        return self._fixed[number]


def check_count(name: str, value: object) -> None:
    """Raises a `PlacetoError` unless the argument `name` is a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise PlacetoError(f"{name} is {value!r}, expected a whole number from 1")


def check_choice(name: str, value: object, known: Sequence[object]) -> None:
    """Raises a `PlacetoError` unless the argument `name` has a value that is known."""
    if value not in known:
        raise PlacetoError(f"{name} is {value!r}, expected one of {', '.join(map(str, known))}")
