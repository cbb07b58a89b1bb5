"""A policy for any number and kind of devices: it scores (group, device) pairs."""

from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from placeto.envs.features.groups import GROUP_ATTRIBUTES, GroupGraph, group_graph
from placeto.envs.features.pairs import GROUP_FEATURES, PAIR_FEATURES, GroupIndex, group_index
from placeto.models.network import Network, masked
from placeto.models.placeto.play import CompiledPolicy
from placeto.models.placeto.schedule import NODE, Arcs, Net
from placeto.models.placeto.scoring import Weights, weights_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.models.placeto.stored import check
from placeto.models.stored import StoredPolicy
from placeto.problem import PlacementProblem


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
        self.enter = nn.Linear(NODE, width)
        self.down = nn.Linear(width + 1, width)
        self.up = nn.Linear(width + 1, width)
        self.after = nn.Linear(width, width)
        self.before = nn.Linear(width, width)
        self.mix = nn.Linear(5 * width, width)
        self.leave = nn.Linear(width, config.embedding)
        self.pool = nn.Linear(width, max(config.pooling, 1))
        columns = PAIR_FEATURES + max(config.pooling, 1)
        self.first = nn.Linear(2 * columns + GROUP_FEATURES + config.embedding, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1, bias=False)
        # Before training all devices are equally likely.
        nn.init.zeros_(self.last.weight)

    def embed(self, arcs: Arcs, nodes: Tensor, follower: Tensor, before: Tensor, where: Tensor,
              num_devices: int) -> tuple[Tensor, Tensor]:  # fmt: skip
        """(batch, groups, E) and (batch, devices, Q)."""
        batch, groups, _ = nodes.shape
        width = self.config.width
        x = self.enter(nodes).relu().flatten(0, 1)
        offset = (torch.arange(batch) * groups)[:, None]
        source = (torch.from_numpy(arcs.source)[None] + offset).flatten()
        target = (torch.from_numpy(arcs.target)[None] + offset).flatten()
        share = torch.from_numpy(arcs.share)[:, None].repeat(batch, 1)
        scales = [torch.from_numpy(each).repeat(batch)[:, None] for each in (arcs.into, arcs.out)]
        others = [(torch.where(each >= 0, each + offset, 0).flatten(),
                   (each >= 0).flatten()[:, None].float()) for each in (follower, before)]  # fmt: skip
        for _ in range(self.config.rounds):
            heard = [x]
            for layer, a, b, scale in ((self.down, source, target, scales[0]),
                                       (self.up, target, source, scales[1])):  # fmt: skip
                y = x @ layer.weight[:, :width].T + layer.bias
                message = (y[a] + share * layer.weight[:, width]).relu()
                heard.append(torch.zeros_like(x).index_add(0, b, message) * scale)
            for layer, (other, there) in zip((self.after, self.before), others, strict=True):
                heard.append(layer(x).relu()[other] * there)
            x = x + self.mix(torch.cat(heard, dim=1)).relu()
        table = self.leave(x).tanh().view(batch, groups, -1)
        pools = torch.zeros(batch, num_devices, len(self.pool.bias))
        if self.config.pooling:
            seconds = torch.from_numpy(arcs.seconds)
            spot = where + (torch.arange(batch) * num_devices)[:, None]
            weighted = (x.view(batch, groups, width) * seconds[None, :, None]).flatten(0, 1)
            sums = torch.zeros(batch * num_devices, width).index_add(0, spot.flatten(), weighted)
            weight = torch.zeros(batch * num_devices).index_add(
                0, spot.flatten(), seconds.repeat(batch))
            mean = sums / weight.clamp(min=1e-30)[:, None]
            pools = self.pool(mean).tanh().view(batch, num_devices, -1)
        return table, pools

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
        split = 2 * x.shape[2]
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
        return CompiledPolicy(index, self.weights(), self.net(), arcs_of(graph, index))

    def net(self) -> Net:
        state = {name: tensor.detach().numpy() for name, tensor in self.state_dict().items()}
        width = self.config.width

        def wide(name):
            return np.ascontiguousarray(state[f"{name}.weight"][:, :width].T)

        def edge(name):
            return np.ascontiguousarray(state[f"{name}.weight"][:, width])

        def whole(name):
            return np.ascontiguousarray(state[f"{name}.weight"].T)

        def bias(name):
            return state[f"{name}.bias"].copy()

        return Net(
            whole("enter"), bias("enter"), wide("down"), edge("down"), bias("down"), wide("up"),
            edge("up"), bias("up"), whole("after"), bias("after"), whole("before"), bias("before"),
            whole("mix"), bias("mix"), whole("leave"), bias("leave"), whole("pool"), bias("pool"),
            self.config.rounds, int(self.config.pooling > 0),
        )  # fmt: skip

    def weights(self) -> Weights:
        """What compiled code scores with; a copy."""
        return weights_of(
            {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}
        )


def arcs_of(graph: GroupGraph, index: GroupIndex) -> Arcs:
    groups = len(index.fastest)
    into = np.maximum(np.bincount(graph.target, minlength=groups), 1)
    out = np.maximum(np.bincount(graph.source, minlength=groups), 1)
    seconds = index.fastest / max(index.fastest.sum(), 1e-30)
    return Arcs(
        np.ascontiguousarray(graph.source, dtype=np.int64),
        np.ascontiguousarray(graph.target, dtype=np.int64),
        np.ascontiguousarray(graph.edges[:, 0]), (1 / into).astype(np.float32),
        (1 / out).astype(np.float32), seconds.astype(np.float32),
    )  # fmt: skip
