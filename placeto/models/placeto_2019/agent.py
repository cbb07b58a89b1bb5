"""Placeto's agent: it goes through the groups of a placement and improves it step by step."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from placeto.envs.episodes import Episodes, EpisodeSpecification
from placeto.models.agent import ALL, Unschooled, Visit
from placeto.models.choices import entropy, masked
from placeto.models.placeto_2019.network import Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.play import Rollout, roll_out
from placeto.models.placeto_2019.settings import Placeto2019Config, Placeto2019NetworkConfig
from placeto.models.placeto_2019.structure import structure
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError

# Of all states that a thread takes at once: what it computes of so many stays in the caches.
GROUPS_AT_ONCE = 16384


class Placeto2019Agent(Unschooled):
    """Placeto's Markov decision process and policy (Addanki et al. 2019, arXiv:1906.08879).

    Args:
        problems: what to place; all on clusters with the same number of devices.
        config: shape of the policy, and how episodes run.
        evaluate: turns placements into step times.

    Raises:
        PlacetoError: clusters with different numbers of devices.
    """

    def __init__(
        self, problems: Sequence[PlacementProblem], config: Placeto2019Config, evaluate: Evaluator
    ) -> None:
        sizes = {problem.num_devices for problem in problems}
        if len(sizes) > 1:
            raise PlacetoError(
                f"problems have {', '.join(map(str, sorted(sizes)))} devices; "
                "this policy takes one number of devices"
            )
        self._problems = problems
        self._specifications = [
            EpisodeSpecification(
                {problem.graph.name: problem}, config.rules, evaluate, device_features=False
            )
            for problem in problems
        ]
        self._structures = [structure(problem) for problem in problems]
        self._episodes: dict[int, Episodes] = {}
        network = config.part(Placeto2019NetworkConfig)
        self.network = Placeto2019Policy(Placeto2019Shape(num_devices=sizes.pop(), **network))

    def roll_out(
        self,
        index: int,
        rng: np.random.Generator,
        *,
        episodes: int,
        part: slice = ALL,
        greedy: bool = False,
        start: Ints | None = None,
        visit: Visit | None = None,
    ) -> Rollout:
        """Goes through the groups; see `play.roll_out`."""
        return roll_out(
            self._lockstep(index, len(range(episodes)[part])),
            self._structures[index],
            self.network,
            rng,
            episodes=episodes,
            part=part,
            greedy=greedy,
            start=start,
            visit=visit,
        )

    def states_at_once(self, index: int) -> int:
        """As many as have `GROUPS_AT_ONCE` groups together."""
        return max(GROUPS_AT_ONCE // self._problems[index].num_groups, 1)

    def terms(self, index: int, played: Rollout, part: slice) -> tuple[Tensor, Tensor]:
        """Of the device that each step chose."""
        features = torch.from_numpy(played.features).flatten(0, 1)
        columns = (played.current, played.allowed, played.actions)
        current, allowed, actions = (torch.from_numpy(c).flatten(0, 1) for c in columns)
        logits = self.network(features[part], current[part], self._structures[index])
        log = masked(logits, allowed[part]).log_softmax(dim=-1)
        return log.gather(1, actions[part, None]).squeeze(1), entropy(log)

    def _lockstep(self, index: int, least: int) -> Episodes:
        """Episodes of a problem, at least so many."""
        if index not in self._episodes or len(self._episodes[index].over()) < least:
            self._episodes[index] = self._specifications[index].episodes(least)
        return self._episodes[index]
