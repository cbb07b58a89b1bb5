"""A policy for any number and kind of devices: it scores (group, device) pairs."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from placeto.errors import PlacetoError
from placeto.features.groups import GROUP_ATTRIBUTES, GroupGraph
from placeto.features.pairs import GROUP_FEATURES, PAIR_FEATURES
from placeto.models.choices import masked
from placeto.models.network import Network
from placeto.models.scoring import Weights, weights_of
from placeto.models.stored import PAIRWISE


@dataclass(frozen=True)
class PairwiseShape:
    """What shape a pairwise policy has.

    Attributes:
        hidden: width of the two layers that score a pair.
        embedding: length of a group's embedding.
        width: of the layers that make the embedding.
        rounds: of messages among the groups.
    """

    hidden: int = 64
    embedding: int = 16
    width: int = 32
    rounds: int = 4

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or value < 1:
                raise PlacetoError(f"policy {name} is {value!r}, expected a whole number from 1")

    def to_document(self) -> dict[str, Any]:
        """The shape as JSON."""
        return {"kind": PAIRWISE, **asdict(self)}


class PairwisePolicy(Network):
    """Scores each device for a group by one network, whatever the number of devices.

    Its inputs are what the present schedule says of the pair (`features.pairs`), the difference of
    that to the mean over the devices, what the schedule says of the group, and an embedding of the
    group made by rounds of messages along the edges of the group graph, in both directions. The
    embedding knows of no placement: it is made once a graph. Scoring devices by a shared network
    as in GiPH (Hu et al. 2023, arXiv:2305.14562).
    """

    config: PairwiseShape

    def __init__(self, config: PairwiseShape) -> None:
        super().__init__()
        self.config = config
        width, hidden = config.width, config.hidden
        self.enter = nn.Linear(GROUP_ATTRIBUTES, width)
        self.down = nn.Linear(width + 1, width)
        self.up = nn.Linear(width + 1, width)
        self.mix = nn.Linear(3 * width, width)
        self.leave = nn.Linear(width, config.embedding)
        self.first = nn.Linear(2 * PAIR_FEATURES + GROUP_FEATURES + config.embedding, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1, bias=False)
        # Before training all devices are equally likely.
        nn.init.zeros_(self.last.weight)

    def embed(self, graph: GroupGraph) -> Tensor:
        """(num_groups, embedding) what the groups are, between -1 and 1."""
        source, target = torch.from_numpy(graph.source), torch.from_numpy(graph.target)
        edges = torch.from_numpy(graph.edges)
        x = self.enter(torch.from_numpy(graph.attributes)).relu()
        for _ in range(self.config.rounds):
            down = _heard(self.down, x, edges, source, target)
            up = _heard(self.up, x, edges, target, source)
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

    def weights(self) -> Weights:
        """What compiled code scores with; a copy."""
        return weights_of(
            {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}
        )


def _heard(layer: nn.Linear, x: Tensor, edges: Tensor, senders: Tensor, hearers: Tensor) -> Tensor:
    messages = layer(torch.cat([x[senders], edges], dim=1)).relu()
    total = torch.zeros(len(x), messages.shape[1]).index_add(0, hearers, messages)
    count = torch.bincount(hearers, minlength=len(x)).clamp(min=1)
    return total / count[:, None]
