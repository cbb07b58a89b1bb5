"""Where episodes start: the graph, the placement and the order of the groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeto.envs.rules import EpisodeRules
from placeto.heuristics.initial import initial_placement
from placeto.problem import PlacementProblem
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

Start = tuple[int, Ints, Ints]
"""Which problem, (num_groups,) devices, and (num_groups * sweeps,) the groups as visited."""


class Starts:
    """Draws the starts of episodes; remembers those placements that are always the same.

    Args:
        problems: by the name of the graph.
        rules: of the episodes.

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

        The options, of `reset`, may have a `graph` and a `placement`; a `PlacetoError` says which
        cannot be used.
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
