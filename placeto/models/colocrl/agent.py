"""ColocRL's agent (Mirhoseini et al. 2017, arXiv:1706.04972)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from placeto.models.choices import entropy
from placeto.models.colocrl.network import ColocRLPolicy, ColocRLShape
from placeto.models.colocrl.settings import ColocRLConfig
from placeto.models.one_shot import OneShotAgent, Shots
from placeto.problem import PlacementProblem
from placeto.simulation import Evaluator
from placeto.support.arrays import Ints


class ColocRLAgent(OneShotAgent[Tensor]):
    """Places the groups one after the other, in topological order, without looking at step times.

    Its choices are a (num_groups, episodes) tensor: devices, groups in topological order.
    """

    network: ColocRLPolicy

    def __init__(
        self, problems: Sequence[PlacementProblem], config: ColocRLConfig, evaluate: Evaluator
    ) -> None:
        super().__init__(problems, config, evaluate)
        problem = self.problem
        self.network = ColocRLPolicy(
            ColocRLShape(
                num_groups=problem.num_groups,
                num_types=self.attributes.types.shape[1],
                num_devices=problem.num_devices,
                width=config.width,
            )
        )
        self._allowed = torch.from_numpy(problem.allowed[problem.group_order])[:, None]

    def draw(
        self, rng: np.random.Generator, episodes: int, part: slice, greedy: bool
    ) -> tuple[Tensor, Ints]:
        """Draws a device for each group."""
        problem = self.problem
        shape = (problem.num_groups, episodes, problem.num_devices)
        noise = (np.zeros(shape) if greedy else rng.gumbel(size=shape))[:, part]
        x = self.network.embed(self.attributes)
        chosen = self.network.placer.draw(x, self._allowed, torch.from_numpy(noise))
        return chosen, chosen.numpy().T[:, problem.group_position]

    def terms(self, index: int, played: Shots[Tensor], part: slice) -> tuple[Tensor, Tensor]:
        """Of all devices together; the entropy of one on average."""
        chosen = played.choices[:, part]
        x = self.network.embed(self.attributes)
        log = self.network.placer(x, self._allowed, chosen)
        return log.gather(2, chosen[:, :, None]).sum(dim=(0, 2)), entropy(log).mean(dim=0)
