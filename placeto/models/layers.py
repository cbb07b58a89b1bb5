"""Layers of Placeto's graph embedding (Addanki et al. 2019, arXiv:1906.08879, section 3.2)."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers with ReLU between them; none after the last.

    Weights are drawn so that ReLU keeps their scale (He et al. 2015, arXiv:1502.01852): the
    embedding is a dozen layers deep, and with a smaller scale every group looks the same.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        nn.init.kaiming_uniform_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Aggregate(nn.Module):
    r"""Combines a set of vectors: :math:`\mathrm{relu}(g(\sum_i \mathrm{relu}(f(x_i)) / n))`.

    Placeto's aggregation, with the sum divided by the number of its terms as in the released
    code's `normalize_aggs`, so that graphs of different sizes look alike.

    Shapes:
        inputs: (batch, num_nodes, width), weights (batch, num_sets, num_nodes)
        output: (batch, num_sets, width)
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.f = mlp([width, width, width])
        self.g = mlp([width, width, width])

    def forward(self, x: Tensor, members: Tensor) -> Tensor:
        """Combines, for every set, the nodes whose weight in it is 1."""
        count = members.sum(dim=-1, keepdim=True).clamp(min=1)
        combined: Tensor = self.g(members @ self.f(x).relu() / count).relu()
        return combined


class Messages(MessagePassing):  # type: ignore[misc]  # of no known type
    r"""What a node hears along edges.

    :math:`\mathrm{relu}(g(\mathrm{mean}_j \mathrm{relu}(f(x_j))))` over the nodes j with an edge
    to it. A node that no edge leads to hears nothing: its row is 0.

    Shapes:
        inputs: x (batch, num_nodes, width), edge_index (2, num_edges), shared by the batch
        output: (batch, num_nodes, width)
    """

    def __init__(self, width: int) -> None:
        super().__init__(aggr="mean", node_dim=-2)
        self.f = mlp([width, width, width])
        self.g = mlp([width, width, width])

    def forward(self, x: Tensor, edge_index: Tensor, heard: Tensor) -> Tensor:
        """Passes messages once.

        Args:
            x: (batch, num_nodes, width) embeddings.
            edge_index: (2, num_edges) source and target.
            heard: (num_nodes, 1) 1 where an edge leads to the node, else 0.
        """
        gathered = self.propagate(edge_index, x=self.f(x).relu())
        messages: Tensor = self.g(gathered).relu() * heard
        return messages


class Rounds(nn.Module):
    r"""k rounds of messages among all nodes: :math:`x \leftarrow h + \mathrm{messages}(x)`.

    Shapes:
        inputs: h (batch, num_nodes, width), edge_index (2, num_edges)
        output: (batch, num_nodes, width)
    """

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__()
        self.messages = Messages(width)
        self.rounds = rounds

    def forward(self, h: Tensor, edge_index: Tensor, levels: Sequence[Tensor]) -> Tensor:
        """Runs the rounds; `levels` is not read."""
        heard = _heard(h, edge_index)
        x = h
        for _ in range(self.rounds):
            x = h + self.messages(x, edge_index, heard)
        return x


class Sweep(nn.Module):
    r"""One pass along the topological order: :math:`x_v = h_v + \mathrm{messages}(x_{parents})`.

    Nodes of one level (the longest path that leads to them) are computed together.

    Shapes:
        inputs: h (batch, num_nodes, width), edge_index (2, num_edges)
        output: (batch, num_nodes, width)
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.messages = Messages(width)

    def forward(self, h: Tensor, edge_index: Tensor, levels: Sequence[Tensor]) -> Tensor:
        """Computes level after level.

        Args:
            h: (batch, num_nodes, width) each node's own transform.
            edge_index: (2, num_edges) parent and child.
            levels: numbers of the edges that lead to each level from the second on.
        """
        x = h
        num_nodes = h.shape[-2]
        for edges in levels:
            parent, child = edge_index[:, edges]
            nodes, position = child.unique(return_inverse=True)
            sums = h.new_zeros(h.shape[0], len(nodes), h.shape[-1])
            sums = sums.index_add(1, position, self.messages.f(x[:, parent]).relu())
            count = torch.bincount(position, minlength=len(nodes)).unsqueeze(-1)
            update = self.messages.g(sums / count).relu()
            x = x + h.new_zeros(h.shape[0], num_nodes, h.shape[-1]).index_add(1, nodes, update)
        return x


def _heard(h: Tensor, edge_index: Tensor) -> Tensor:
    heard = h.new_zeros(h.shape[-2], 1)
    heard[edge_index[1]] = 1
    return heard
