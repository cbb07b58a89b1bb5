"""Placeto's policy: graph embedding, pooling, a softmax over devices."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from placeto.envs.features import num_node_features, present_device
from placeto.models.network import Network, mlp
from placeto.models.placeto_2019.messages import Pools, Rounds, Sweep
from placeto.models.placeto_2019.settings import Placeto2019NetworkConfig
from placeto.models.placeto_2019.structure import DIRECTIONS, Structure


@dataclass(frozen=True, kw_only=True)
class Placeto2019Shape(Placeto2019NetworkConfig):
    """What shape a policy has."""

    num_devices: int


class GraphReader(Network):
    """Reads what there is to know for the choice of the current group's device.

    Placeto (Addanki et al. 2019, arXiv:1906.08879, section 3.2): each group's attributes are
    transformed; messages pass from parents to children and back; embeddings are pooled apart over
    the current group's ancestors, its descendants and the rest.

    Shapes:
        inputs: features (batch, num_groups, num_features), current (batch,)
        output: (batch, summary_width): the pools, and the current group's embedding

    Attributes:
        summary_width: how many numbers it makes of a state.
    """

    agent = "placeto-2019"
    shape = Placeto2019Shape
    config: Placeto2019Shape

    def __init__(self, config: Placeto2019Shape) -> None:
        super().__init__(config)
        width = config.width
        self.transform = mlp([num_node_features(config.num_devices), width, width])
        self.messages: Rounds | Sweep | None = None
        if config.passing == "sweep":
            self.messages = Sweep(width)
        elif config.passing == "rounds":
            self.messages = Rounds(width, config.rounds)
        embedding = DIRECTIONS * width
        pools = 3 if config.pooling == "partition" else 1
        self.pools = Pools(pools, embedding)
        self.summary_width = embedding * (pools + 1)

    def read(self, features: Tensor, current: Tensor, graph: Structure) -> Tensor:
        """(batch, summary_width) what is read of a batch of states of one problem.

        Args:
            features: (batch, num_groups, num_features) as `features.node_features` makes them.
            current: (batch,) the group whose device is chosen.
            graph: of the problem.
        """
        x = self.embed(features, graph)
        if self.config.pooling == "partition":
            members = graph.relatives[:, current]
        else:
            members = torch.ones(1, *features.shape[:2], dtype=torch.bool, device=x.device)
        at = x[current, torch.arange(len(current), device=x.device)]
        return torch.cat([self.pools(x, members), at], dim=-1)

    def embed(self, features: Tensor, graph: Structure) -> Tensor:
        """(num_groups, batch, 2 * width) embeddings of the groups."""
        h = self.transform(features.transpose(0, 1)).relu_()
        if self.messages is None:
            return torch.cat([h, h], dim=-1)
        down, up = self.messages(h, graph)
        return torch.cat([down, up], dim=-1)


class Placeto2019Policy(GraphReader):
    """Scores every device for the current group: a softmax over devices follows."""

    def __init__(self, config: Placeto2019Shape) -> None:
        super().__init__(config)
        width = DIRECTIONS * config.width
        self.head = mlp([self.summary_width, width, width, config.num_devices])
        self.keep = nn.Parameter(torch.tensor(float(config.keep)))

    def forward(self, features: Tensor, current: Tensor, graph: Structure) -> Tensor:
        """(batch, num_devices) logits; see `read`."""
        return self.score(self.read(features, current, graph), features, current)

    def score(self, summary: Tensor, features: Tensor, current: Tensor) -> Tensor:
        """(batch, num_devices) logits of what was read of these states."""
        rows = torch.arange(len(current), device=features.device)
        present: Tensor = present_device(features[rows, current])
        logits: Tensor = self.head(summary)
        return torch.addcmul(logits, self.keep, present)
