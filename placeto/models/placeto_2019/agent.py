"""Placeto's agent: it goes through the groups of a placement and improves it step by step."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from placeto.envs.features import static_features
from placeto.graph import Ints
from placeto.models.agent import ALL, Unschooled, Visit
from placeto.models.choices import entropy, masked
from placeto.models.placeto_2019.network import Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.play import Rollout, roll_out
from placeto.models.placeto_2019.settings import Placeto2019Config
from placeto.models.placeto_2019.structure import structure
from placeto.problem import PlacementProblem
from placeto.simulation import EvaluatedBatch, Evaluator
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
        self._config = config
        self._evaluate = evaluate
        self._static = [static_features(problem) for problem in problems]
        self._structures = [structure(problem) for problem in problems]
        self._batches: list[EvaluatedBatch | None] = [None] * len(problems)
        self.network = Placeto2019Policy(
            Placeto2019Shape(
                num_devices=sizes.pop(),
                width=config.width,
                passing=config.passing,
                rounds=config.rounds,
                pooling=config.pooling,
                keep=config.keep,
            )
        )

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
        """Goes through the groups; see `rollout.roll_out`."""
        return roll_out(
            self._batch(index, len(range(episodes)[part])),
            self._static[index],
            self._structures[index],
            self.network,
            self._config,
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

    def _batch(self, index: int, episodes: int) -> EvaluatedBatch:
        batch = self._batches[index]
        if batch is None or len(batch.devices) < episodes:
            batch = EvaluatedBatch(self._problems[index], episodes, self._evaluate)
            self._batches[index] = batch
        return batch
