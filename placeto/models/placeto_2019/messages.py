"""How messages pass in Placeto's graph embedding (Addanki et al. 2019, arXiv:1906.08879)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from placeto.models.layers import function, side_by_side
from placeto.models.placeto_2019.structure import DIRECTIONS, Links, Structure


def mean_heard(x: Tensor, links: Links) -> Tensor:
    """(num_hearers, ...) means of the rows of x that each hearer hears; 0 of none."""
    rows = x.flatten(1)
    means = F.embedding_bag(
        links.senders, rows, links.first, mode="sum", per_sample_weights=links.weights
    )
    return means.view(len(means), *x.shape[1:])


class Rounds(nn.Module):
    r"""k rounds of messages among all groups, along the edges and against them.

    Section 3.2: :math:`x_v \leftarrow h_v + \mathrm{relu}(g(\mathrm{mean}_u
    \mathrm{relu}(f(x_u))))` over the groups u with an edge to v, from :math:`x = h`; f and g of
    their own in each direction, and no message where no edge leads. The means of both
    directions are one product with a sparse matrix.

    Shapes:
        inputs: h (num_groups, batch, width)
        output: (2, num_groups, batch, width), from parents to children and back
    """

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__()
        pairs = [(function(width), function(width)) for _ in range(DIRECTIONS)]
        self.f = side_by_side([f for f, _ in pairs])
        self.g = side_by_side([g for _, g in pairs])
        self.rounds = rounds

    def forward(self, h: Tensor, graph: Structure) -> Tensor:
        """Runs the rounds."""
        groups, batch, width = h.shape
        x = h.expand(DIRECTIONS, -1, -1, -1)
        for _ in range(self.rounds):
            said = self.f(x.reshape(DIRECTIONS, groups * batch, width))
            heard = mean_heard(said.view(DIRECTIONS * groups, batch * width), graph.links)
            messages = self.g(heard.view(DIRECTIONS, groups * batch, width))
            x = torch.addcmul(h, messages.view(DIRECTIONS, groups, batch, width), graph.heard)
        return x


class Sweep(nn.Module):
    r"""One pass along the topological order, and one against it.

    :math:`x_v = h_v + \mathrm{relu}(g(\mathrm{mean}_u \mathrm{relu}(f(x_u))))` over the groups u
    with an edge to v. Groups of one level (the longest path that leads to them) are computed
    together.

    Shapes:
        inputs: h (num_groups, batch, width)
        output: (2, num_groups, batch, width), from parents to children and back
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        pairs = [(function(width), function(width)) for _ in range(DIRECTIONS)]
        self.f = nn.ModuleList(f for f, _ in pairs)
        self.g = nn.ModuleList(g for _, g in pairs)

    def forward(self, h: Tensor, graph: Structure) -> Tensor:
        """Computes level after level, each direction by itself."""
        directions = []
        for f, g, levels in zip(self.f, self.g, graph.levels, strict=True):
            x = h
            for level in levels:
                senders = level.links.senders
                numbers = torch.arange(len(senders), device=senders.device)
                links = Links(numbers, level.links.first, level.links.weights)
                x = x.index_add(0, level.groups, g(mean_heard(f(x[senders]), links)))
            directions.append(x)
        return torch.stack(directions)
