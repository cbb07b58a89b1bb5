"""A policy for any number and kind of devices: it scores (group, device) pairs."""

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from placeto.envs.features.groups import GROUP_ATTRIBUTES, GroupGraph, group_graph
from placeto.envs.features.pairs import GROUP_FEATURES, GroupIndex, group_index
from placeto.models.network import Network, masked
from placeto.models.placeto.play import CompiledPolicy
from placeto.models.placeto.pools import RELATIONS, Kin, kin_of, sums, sums_backward
from placeto.models.placeto.scoring import Weights, embedding_of, weights_of
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.models.placeto.stored import check
from placeto.models.stored import StoredPolicy
from placeto.problem import PlacementProblem
from placeto.support.arrays import Features


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


class KinTensors(NamedTuple):
    """How the groups of a problem are related."""

    relation: Tensor  # (1, num_groups, num_groups, RELATIONS) 1 at what the column is to the row
    position: Tensor  # (num_groups,) longest path of work to it, as a share of the longest
    work: Tensor  # (num_groups,) time on the fastest device, as a share of all
    share: Tensor  # (num_groups, num_groups) of the row's bytes, those from and to the column

    @classmethod
    def of(cls, kin: Kin) -> Self:
        """The same as tensors."""
        share = np.zeros(kin.relation.shape, np.float32)
        rows = np.repeat(np.arange(len(share)), np.diff(kin.start))
        np.add.at(share, (rows, kin.neighbour), kin.share)
        relation = nn.functional.one_hot(torch.from_numpy(kin.relation).long(), RELATIONS)
        return cls(relation.float()[None], *map(torch.from_numpy, (kin.position, kin.work, share)))


class Embedded(NamedTuple):
    """What the groups of a graph are, by themselves and in their surroundings."""

    table: Tensor  # (num_groups, embedding) between -1 and 1
    queries: Tensor | None  # (num_groups, heads, rank); None without pools
    keys: Tensor | None  # (num_groups, heads, rank)


class Pooled(torch.autograd.Function):
    """`PlacetoPolicy.pooled`, of affinities to which what the schedule says is still to be added.

    In compiled code, which goes once over all pairs of a state and a group: torch would take a
    dozen passes, and most of the time of an update.
    """

    @staticmethod
    def forward(ctx: Any, static: Tensor, late: Tensor, case: tuple[Any, ...]) -> Tensor:
        """The sums of `pools.sums`."""
        *tensors, num_devices = case
        inputs = (static.detach().contiguous(), late.detach(), *tensors)
        arrays = tuple(each.numpy() for each in inputs)
        ctx.arrays = arrays
        return torch.from_numpy(sums(*arrays, num_devices))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradients of `pools.sums_backward`."""
        static, late = sums_backward(*ctx.arrays, gradient.contiguous().numpy())
        return torch.from_numpy(static), torch.from_numpy(late), None


class PlacetoPolicy(Network):
    """Scores each device for a group by one network, whatever the number of devices.

    Its inputs are what the present schedule says of the pair (`features.pairs`), what is pooled
    over the groups on the device (`pooled`), the difference of both to the mean over the devices,
    what the schedule says of the group, and an embedding of the group made by rounds of messages
    along the edges of the group graph, in both directions. The embedding knows of no placement: it
    is made once a graph. Scoring devices by a shared network as in GiPH (Hu et al. 2023,
    arXiv:2305.14562).
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
        if config.num_rounds:
            self.down = nn.Linear(width + 1, width)
            self.up = nn.Linear(width + 1, width)
            self.heard = Heard()
            self.mix = nn.Linear(3 * width, width)
        self.leave = nn.Linear(width, config.embedding)
        if heads := config.num_heads:
            self.query = nn.Linear(width, heads * config.rank)
            self.key = nn.Linear(width, heads * config.rank)
            # Heads that begin apart: what is drawn here are pools, if not yet the best ones.
            self.by_relation = nn.Parameter(torch.empty(2, RELATIONS, heads).uniform_(-2, 2))
            self.apart = nn.Parameter(torch.empty(2, heads).uniform_(-4, 4))
        self.first = nn.Linear(2 * config.pair_columns + GROUP_FEATURES + config.embedding, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1, bias=False)
        # Before training all devices are equally likely.
        nn.init.zeros_(self.last.weight)

    def embed(self, graph: GroupGraph) -> Embedded:
        """What the groups of a graph are."""
        along = torch.from_numpy(np.stack([graph.source, graph.target]))
        edges = torch.from_numpy(graph.edges)
        x = self.enter(torch.from_numpy(graph.attributes)).relu()
        for _ in range(self.config.num_rounds):
            down = self.heard(self.down, x, along, edges)
            up = self.heard(self.up, x, along.flip(0), edges)
            x = x + self.mix(torch.cat([x, down, up], dim=1)).relu()
        table: Tensor = self.leave(x).tanh()
        if not self.config.num_heads:
            return Embedded(table, None, None)
        shape = len(x), self.config.num_heads, self.config.rank
        return Embedded(table, self.query(x).view(shape), self.key(x).view(shape))

    def pooled(
        self, embedded: Embedded, kin: KinTensors, current: Tensor, devices: Tensor,
        visited: Tensor, starts: Tensor, num_devices: int,
    ) -> Tensor:  # fmt: skip
        r"""Sums over the groups on each device.

        Of a head, the affinity of a group v for another group u is

        :math:`a_{vu} = \sigma(q_v \cdot k_u + b_{r(v, u)} + c |p_v - p_u| + d |t_v - t_u|)`

        with :math:`\sigma(x) = x / (1 + |x|)`, queries and keys made of the groups' embeddings, r
        what u is to v (ancestor, descendant or parallel, visited in this episode or not), p how far
        along the graph they are, and t their starts in the present schedule. A device's two sums
        are those of a over the other groups on it, weighted by their share of all work, and by the
        bytes that v reads of them or that they read of it, as a share of all that v does.

        Args:
            embedded: the groups.
            kin: how they are related.
            current: (batch,) groups.
            devices: (batch, num_groups) of all groups.
            visited: (batch, num_groups) whose devices were chosen.
            starts: (batch, num_groups) of all groups, as shares of the step time.
            num_devices: how many.

        Returns:
            (batch, num_devices, SUMS * heads).
        """
        queries, keys = embedded.queries, embedded.keys
        assert queries is not None and keys is not None
        along = (kin.position[:, None] - kin.position).abs()[:, :, None] * self.apart[0]
        static = torch.einsum("vhr,uhr->vuh", queries, keys) + along
        by_relation = kin.relation @ self.by_relation[:, None]
        case = current, devices, visited, starts, kin.work, kin.share, num_devices
        found: Tensor = Pooled.apply(static + by_relation, self.apart[1], case)  # type: ignore[no-untyped-call]
        return found

    def forward(self, x: Tensor, y: Tensor, z: Tensor, allowed: Tensor) -> Tensor:
        """Scores devices.

        Args:
            x: (batch, num_devices, columns) what is seen and what is pooled of each device.
            y: (batch, GROUP_FEATURES).
            z: (batch, embedding) of the groups.
            allowed: (batch, num_devices) where the groups may be.

        Returns:
            (batch, num_devices) logits; minus infinity where a group may not be.
        """
        count = allowed.sum(dim=1).clamp(min=1)
        mean = (x * allowed[:, :, None]).sum(dim=1) / count[:, None]
        pairs = torch.cat([x, x - mean[:, None]], dim=2)
        split = 2 * self.config.pair_columns
        weight = self.first.weight
        base = torch.cat([y, z], dim=1) @ weight[:, split:].T + self.first.bias
        hidden = (pairs @ weight[:, :split].T + base[:, None]).relu()
        logits = self.last(self.second(hidden).relu()).squeeze(2)
        return masked(logits, allowed)

    def guide(self, problem: PlacementProblem) -> CompiledPolicy:
        """The policy made ready for a problem; a copy."""
        graph = group_graph(problem)
        return self.ready(graph, group_index(problem), kin_of(problem, graph))

    def ready(self, graph: GroupGraph, index: GroupIndex, kin: Kin) -> CompiledPolicy:
        """Likewise, for the problem that these were read off."""
        table, affinity = embedding_of(self.arrays(), graph, self.config)
        return CompiledPolicy(index, self.weights(), table, affinity, kin)

    def weights(self) -> Weights:
        """What compiled code scores with; a copy."""
        return weights_of(self.arrays(), self.config)

    def arrays(self) -> dict[str, Features]:
        """All weights by their names; a copy."""
        return {name: tensor.numpy().copy() for name, tensor in self.state_dict().items()}
