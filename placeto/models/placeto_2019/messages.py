"""How messages pass in Placeto, and are pooled (Addanki et al. 2019, arXiv:1906.08879)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from placeto.models.network import function, side_by_side
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
                links = level.links._replace(senders=numbers)
                x = x.index_add(0, level.groups, g(mean_heard(f(x[senders]), links)))
            directions.append(x)
        return torch.stack(directions)


class Pools(nn.Module):
    r"""Combines disjoint sets of groups, each with functions of its own.

    Section 3.2: :math:`\mathrm{relu}(g_k(\sum_{v \in S_k} \mathrm{relu}(f_k(x_v)) / |S_k|))`, the
    sum divided by the number of its terms as in the released code's `normalize_aggs`, so that
    graphs of different sizes look alike. The sets are those of each state's current group; f_k is
    computed of the members of the k-th only.

    Shapes:
        inputs: x (num_groups, batch, width), members (count, batch, num_groups) which groups are in
            each set of each state
        output: (batch, count * width)
    """

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        pairs = [(function(width), function(width)) for _ in range(count)]
        self.f = nn.ModuleList(f for f, _ in pairs)
        self.g = side_by_side([g for _, g in pairs])

    def forward(self, x: Tensor, members: Tensor) -> Tensor:
        """Pools the sets of every state."""
        count, batch, _ = members.shape
        pool, state, group = members.nonzero(as_tuple=True)
        numbers = pool * batch + state
        sizes = torch.bincount(numbers, minlength=count * batch)
        heard = x.flatten(0, 1).index_select(0, group * batch + state)
        parts = torch.split(heard, sizes.view(count, -1).sum(1).tolist())
        terms = torch.cat([f(part) for f, part in zip(self.f, parts, strict=True)])
        sums = terms.new_zeros(count * batch, x.shape[-1]).index_add(0, numbers, terms)
        means = sums / sizes.clamp(min=1).unsqueeze(1)
        pooled: Tensor = self.g(means.view(count, batch, -1))
        return pooled.transpose(0, 1).flatten(1)
