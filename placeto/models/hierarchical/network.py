"""The hierarchical policy: a grouper, and a placer of what it made (Mirhoseini et al. 2018)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from placeto.models.hierarchical.settings import HierarchicalNetworkConfig
from placeto.models.network import Network, mlp
from placeto.models.one_shot import NEIGHBOURS, OUTPUTS, Attributes
from placeto.models.seq2seq import Seq2Seq

# What the grouper's logits are multiplied with, and what that of a group's home is raised by. Where
# groups are scattered over the clusters at first, the placer learns to use one device before the
# grouper has learned anything.
SHARPNESS = 10.0
HOME = 8.0


@dataclass(frozen=True, kw_only=True)
class HierarchicalShape(HierarchicalNetworkConfig):
    """What shape the policy has: that of one problem."""

    num_types: int  # of ops
    num_devices: int


class Grouper(nn.Module):
    """Scores the clusters that a group may go to: a network of one hidden layer.

    Mirhoseini et al. 2018, section 3: from the embeddings of the op types, the sizes of the outputs
    and the places of at most six parents and six children in the topological order. What the paper
    does not have: at first it mostly cuts the topological order into runs of equal length, one a
    cluster, its groups' home.

    Shapes:
        output: (num_groups, clusters) logits
    """

    def __init__(self, num_types: int, clusters: int, width: int) -> None:
        super().__init__()
        self.types = nn.Linear(num_types, width, bias=False)
        self.network = mlp([width + OUTPUTS + 1 + 2 * NEIGHBOURS, width, clusters])

    def forward(self, groups: Attributes) -> Tensor:
        """Scores the clusters for every group."""
        x = groups.embedded(self.types, groups.outputs, groups.places)
        logits: Tensor = self.network(x)
        home = torch.arange(len(logits)) * logits.shape[1] // len(logits)
        return SHARPNESS * logits + HOME * F.one_hot(home, logits.shape[1])


class HierarchicalPolicy(Network):
    """A grouper, and a sequence-to-sequence placer of its clusters; trained together."""

    agent = "hierarchical"
    shape = HierarchicalShape
    config: HierarchicalShape

    def __init__(self, config: HierarchicalShape) -> None:
        super().__init__(config)
        self.grouper = Grouper(config.num_types, config.clusters, config.width)
        inputs = config.num_types + OUTPUTS + 2 * config.clusters
        self.placer = Seq2Seq(inputs, config.num_devices, config.width)

    def embed(self, groups: Attributes, cluster: Tensor) -> Tensor:
        """What the placer knows of the clusters of some groupings.

        Section 3 of the paper: how many ops of each type there are, the sum of the sizes of the
        outputs, and which clusters are parents and children; each row over its largest value and 1.

        Args:
            groups: of the problem.
            cluster: (batch, num_groups) the cluster of each group.

        Returns:
            (clusters, batch, inputs).
        """
        types, outputs, parents = (
            torch.from_numpy(each).to(self.grouper.types.weight.dtype)
            for each in (groups.types, groups.outputs, groups.parents)
        )
        member = F.one_hot(cluster, self.config.clusters).to(types.dtype)
        sums = member.transpose(1, 2) @ torch.cat([types, outputs], dim=-1)
        above = (member.transpose(1, 2) @ parents @ member).clamp(max=1)
        rows = torch.cat([sums, above, above.transpose(1, 2)], dim=-1)
        return (rows / (rows.amax(dim=-1, keepdim=True) + 1)).transpose(0, 1)
