"""A policy for any number and kind of devices: it scores (group, device) pairs."""

from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from placeto.envs.features.groups import GROUP_ATTRIBUTES, GroupGraph, group_graph
from placeto.envs.features.pairs import GROUP_FEATURES, PAIR_FEATURES, GroupIndex, group_index
from placeto.models.network import Network, masked
from placeto.models.placeto.play import CompiledPolicy
from placeto.models.placeto.scoring import Weights, weights_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.models.placeto.stored import check
from placeto.models.stored import StoredPolicy
from placeto.problem import PlacementProblem


class Heard(MessagePassing):  # type: ignore[misc]
    r"""What each group hears of its neighbours in one direction, on average; 0 of none.

    :math:`y_v = \mathrm{mean}_u \mathrm{relu}(W [x_u, e_{uv}] + b)` over the groups u that send to
    v, the neighbourhood summary of Placeto (Addanki et al. 2019, arXiv:1906.08879, section 3.2)
    with the edges' attributes as in Gilmer et al. 2017 (arXiv:1704.01212).

    Shapes:
        inputs: x (num_groups, width), edge_index (2, num_edges), edges (num_edges, 1)
        output: (num_groups, width)
    """

    def __init__(self) -> None:
        super().__init__(aggr="mean")

    def forward(self, layer: nn.Linear, x: Tensor, edge_index: Tensor, edges: Tensor) -> Tensor:
        """Passes messages that a layer makes."""
        heard: Tensor = self.propagate(
            edge_index, size=(len(x), len(x)), x=x, edges=edges, layer=layer
        )
        return heard

    def message(self, x_j: Tensor, edges: Tensor, layer: nn.Linear) -> Tensor:
        """(num_edges, width) what is sent along each edge."""
        messages: Tensor = layer(torch.cat([x_j, edges], dim=1)).relu()
        return messages


class PlacetoPolicy(Network):
    """Scores each device for a group by one network, whatever the number of devices.

    Its inputs are what the present schedule says of the pair (`features.pairs`), the difference of
    that to the mean over the devices, what the schedule says of the group, and an embedding of the
    group made by rounds of messages along the edges of the group graph, in both directions. The
    embedding knows of no placement: it is made once a graph. Scoring devices by a shared network
    as in GiPH (Hu et al. 2023, arXiv:2305.14562).
    """

    agent = "placeto"
    shape = PlacetoNetworkConfig
    config: PlacetoNetworkConfig

    @classmethod
    def of(cls, stored: StoredPolicy) -> Self:
        """The network of a stored policy, of a size that can be; see `Network.of`."""
        check(stored)
        return super().of(stored)

    def __init__(self, config: PlacetoNetworkConfig) -> None:
        super().__init__(config)
        width, hidden = config.width, config.hidden
        self.enter = nn.Linear(GROUP_ATTRIBUTES, width)
        self.down = nn.Linear(width + 1, width)
        self.up = nn.Linear(width + 1, width)
        self.heard = Heard()
        self.mix = nn.Linear(3 * width, width)
        self.leave = nn.Linear(width, config.embedding)
        self.first = nn.Linear(2 * PAIR_FEATURES + GROUP_FEATURES + config.embedding, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1, bias=False)
        # Before training all devices are equally likely.
        nn.init.zeros_(self.last.weight)

    def embed(self, graph: GroupGraph) -> Tensor:
        """(num_groups, embedding) what the groups are, between -1 and 1."""
        along = torch.from_numpy(np.stack([graph.source, graph.target]))
        edges = torch.from_numpy(graph.edges)
        x = self.enter(torch.from_numpy(graph.attributes)).relu()
        for _ in range(self.config.rounds):
            down = self.heard(self.down, x, along, edges)
            up = self.heard(self.up, x, along.flip(0), edges)
            x = x + self.mix(torch.cat([x, down, up], dim=1)).relu()
        table: Tensor = self.leave(x).tanh()
        return table

    def forward(self, x: Tensor, y: Tensor, z: Tensor, allowed: Tensor) -> Tensor:
        """Scores devices.

        Args:
            x: (batch, num_devices, PAIR_FEATURES).
            y: (batch, GROUP_FEATURES).
            z: (batch, embedding) of the groups.
            allowed: (batch, num_devices) where the groups may be.

        Returns:
            (batch, num_devices) logits; minus infinity where a group may not be.
        """
        count = allowed.sum(dim=1).clamp(min=1)
        mean = (x * allowed[:, :, None]).sum(dim=1) / count[:, None]
        pairs = torch.cat([x, x - mean[:, None]], dim=2)
        split = 2 * PAIR_FEATURES
        weight = self.first.weight
        base = torch.cat([y, z], dim=1) @ weight[:, split:].T + self.first.bias
        hidden = (pairs @ weight[:, :split].T + base[:, None]).relu()
        logits = self.last(self.second(hidden).relu()).squeeze(2)
        return masked(logits, allowed)

    def guide(self, problem: PlacementProblem) -> CompiledPolicy:
        """The policy made ready for a problem; a copy."""
        return self.ready(group_graph(problem), group_index(problem))

    def ready(self, graph: GroupGraph, index: GroupIndex) -> CompiledPolicy:
        """Likewise, for the problem that these were read off."""
        return CompiledPolicy(index, self.weights(), self.embed(graph).detach().numpy())

    def weights(self) -> Weights:
        """What compiled code scores with; a copy."""
        return weights_of(
            {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}
        )
