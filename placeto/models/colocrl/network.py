"""ColocRL's policy: co-location groups in, their devices out (Mirhoseini et al. 2017)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from placeto.models.attributes import OUTPUTS, Attributes
from placeto.models.network import Network
from placeto.models.seq2seq import Seq2Seq
from placeto.models.settings import OneShotNetworkConfig


@dataclass(frozen=True, kw_only=True)
class ColocRLShape(OneShotNetworkConfig):
    """What shape the policy has: that of one problem.

    Attributes:
        num_groups: how many groups it places.
        num_types: how many types of ops there are in them.
        num_devices: how many devices it chooses from.
    """

    num_groups: int
    num_types: int
    num_devices: int


class ColocRLPolicy(Network):
    """Embeds the groups of a problem; a sequence-to-sequence network gives each a device.

    Mirhoseini et al. 2017 (arXiv:1706.04972, section 3.3): a group is embedded as the mean of the
    learned embeddings of its ops' types, the sizes of its outputs, and which groups are its parents
    and which its children, one-hot.
    """

    agent = "colocrl"
    shape = ColocRLShape
    config: ColocRLShape

    def __init__(self, config: ColocRLShape) -> None:
        super().__init__(config)
        self.types = nn.Linear(config.num_types, config.width, bias=False)
        inputs = config.width + OUTPUTS + 2 * config.num_groups
        self.placer = Seq2Seq(inputs, config.num_devices, config.width)

    def embed(self, groups: Attributes) -> Tensor:
        """(num_groups, 1, inputs) embeddings of the groups, in the order of the attributes."""
        dtype = self.types.weight.dtype
        shares = torch.from_numpy(groups.types / groups.types.sum(axis=1, keepdims=True))
        others = (groups.outputs, groups.parents, groups.parents.T)
        known = torch.cat([torch.from_numpy(other).to(dtype) for other in others], dim=-1)
        return torch.cat([self.types(shares.to(dtype)), known], dim=-1)[:, None]
