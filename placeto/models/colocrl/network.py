"""ColocRL's policy: co-location groups in, their devices out (Mirhoseini et al. 2017)."""

from dataclasses import dataclass

from torch import Tensor, nn

from placeto.models.network import Network
from placeto.models.one_shot import OUTPUTS, Attributes
from placeto.models.seq2seq import Seq2Seq
from placeto.models.settings import OneShotNetworkConfig


@dataclass(frozen=True, kw_only=True)
class ColocRLShape(OneShotNetworkConfig):
    """What shape the policy has: that of one problem."""

    num_groups: int
    num_types: int  # of ops
    num_devices: int


class ColocRLPolicy(Network):
    """Embeds the groups of a problem; a sequence-to-sequence network gives each a device.

    Mirhoseini et al. 2017 (arXiv:1706.04972, section 3.3): a group is embedded as the mean of the
    learned embeddings of its ops' types, the sizes of its outputs, and which groups are its parents
    and which its children, one-hot.
    """

    agent = "colocrl"
    shape = ColocRLShape

    def __init__(self, config: ColocRLShape) -> None:
        super().__init__(config)
        self.types = nn.Linear(config.num_types, config.width, bias=False)
        inputs = config.width + OUTPUTS + 2 * config.num_groups
        self.placer = Seq2Seq(inputs, config.num_devices, config.width)

    def embed(self, groups: Attributes) -> Tensor:
        """(num_groups, 1, inputs) embeddings of the groups, in the order of the attributes."""
        others = groups.outputs, groups.parents, groups.parents.T
        return groups.embedded(self.types, *others)[:, None]
