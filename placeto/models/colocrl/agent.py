"""ColocRL's agent (Mirhoseini et al. 2017, arXiv:1706.04972)."""

import numpy as np
import torch
from torch import Tensor

from placeto.models.agent import Wanted
from placeto.models.colocrl.network import ColocRLPolicy, ColocRLShape
from placeto.models.network import entropy
from placeto.models.one_shot import OneShotAgent, Shots
from placeto.support.arrays import Ints


class ColocRLAgent(OneShotAgent[Tensor]):
    """Places the groups one after the other, in topological order, without looking at step times.

    Its choices are a (num_groups, episodes) tensor: devices, groups in topological order.
    """

    network: ColocRLPolicy

    def _policy(self, **sizes: int) -> ColocRLPolicy:
        return ColocRLPolicy(ColocRLShape(num_groups=self.problem.num_groups, **sizes))

    def draw(self, wanted: Wanted, rng: np.random.Generator) -> tuple[Tensor, Ints]:
        """Draws a device for each group."""
        problem = self.problem
        noise = wanted.noise(rng, problem.num_groups, wanted.episodes, problem.num_devices)
        x = self.network.embed(self.attributes)
        luck = torch.from_numpy(noise[:, wanted.part])
        chosen = self.network.placer.draw(x, self._allowed[:, None], luck)
        return chosen, chosen.numpy().T[:, problem.group_position]

    def terms(self, index: int, played: Shots[Tensor], part: slice) -> tuple[Tensor, Tensor]:
        """Of all devices together; the entropy of one on average."""
        chosen = played.choices[:, part]
        x = self.network.embed(self.attributes)
        log = self.network.placer(x, self._allowed[:, None], chosen)
        return log.gather(2, chosen[:, :, None]).sum(dim=(0, 2)), entropy(log).mean(dim=0)
