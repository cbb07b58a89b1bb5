"""How Placeto pools what it knows of the groups (Addanki et al. 2019, arXiv:1906.08879)."""

import torch
from torch import Tensor, nn

from placeto.models.layers import function, side_by_side


class Pools(nn.Module):
    r"""Combines disjoint sets of groups, each with functions of its own.

    Section 3.2: :math:`\mathrm{relu}(g_k(\sum_{v \in S_k} \mathrm{relu}(f_k(x_v)) / |S_k|))`, the
    sum divided by the number of its terms as in the released code's `normalize_aggs`, so that
    graphs of different sizes look alike. The sets are those of each state's current group; f_k is
    computed of the members of the k-th only.

    Shapes:
        inputs: x (num_groups, batch, width), members (count, batch, num_groups)
        output: (batch, count * width)
    """

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        pairs = [(function(width), function(width)) for _ in range(count)]
        self.f = nn.ModuleList(f for f, _ in pairs)
        self.g = side_by_side([g for _, g in pairs])

    def forward(self, x: Tensor, members: Tensor) -> Tensor:
        """Pools the sets of every state.

        Args:
            x: (num_groups, batch, width) embeddings.
            members: (count, batch, num_groups) which groups are in each set of each state.
        """
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
