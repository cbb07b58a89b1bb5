"""Placeto's policy: graph embedding, pooling, a softmax over devices."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from placeto.errors import PlacetoError
from placeto.features import num_node_features, present_device
from placeto.models.layers import Aggregate, Rounds, Sweep, mlp
from placeto.order import levels
from placeto.problem import PlacementProblem


@dataclass(frozen=True)
class PolicyConfig:
    """What shape a policy has.

    Attributes:
        num_devices: how many devices it chooses from.
        width: of the embeddings, in each of the two directions.
        passing: `rounds` (messages among all nodes), `sweep` (one pass along the topological
            order), or `none` (no messages: the "simple aggregator").
        rounds: how many rounds.
        pooling: `partition` (over ancestors, descendants and parallel nodes apart) or `all` (over
            all nodes at once: the "simple partitioner").
        keep: what the logit of the group's present device is raised by before training; learned
            from there on. 0 is the paper's.
    """

    num_devices: int
    width: int = 16
    passing: Literal["rounds", "sweep", "none"] = "rounds"
    rounds: int = 8
    pooling: Literal["partition", "all"] = "partition"
    keep: float = 3.0

    def __post_init__(self) -> None:
        for name, least in (("num_devices", 1), ("width", 1), ("rounds", 1)):
            if getattr(self, name) < least:
                raise PlacetoError(f"policy {name} is {getattr(self, name)}, expected {least} up")
        for name, known in (
            ("passing", ("rounds", "sweep", "none")),
            ("pooling", ("partition", "all")),
        ):
            if getattr(self, name) not in known:
                raise PlacetoError(
                    f"policy {name} is {getattr(self, name)!r}, expected one of {', '.join(known)}"
                )

    def to_document(self) -> dict[str, Any]:
        """The configuration as JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Structure:
    """A problem's group graph as the policy reads it.

    Attributes:
        edge_index: (2, num_edges) parent and child of `problem.dag_edges`.
        forward_levels: edges that lead to each level from the second on, parents first.
        backward_levels: the same of the reversed graph.
        ancestors: (num_groups, num_groups) 1 where the column is an ancestor of the row.
        descendants: (num_groups, num_groups) 1 where it is a descendant.
        parallel: (num_groups, num_groups) 1 where it is neither, nor the group itself.
    """

    edge_index: Tensor
    forward_levels: Sequence[Tensor]
    backward_levels: Sequence[Tensor]
    ancestors: Tensor
    descendants: Tensor
    parallel: Tensor


def structure(problem: PlacementProblem) -> Structure:
    """What of a problem the policy reads besides the node features."""
    parent, child = problem.dag_edges
    ancestors = problem.ancestors
    other = ~(ancestors | ancestors.T | np.eye(problem.num_groups, dtype=bool))
    return Structure(
        edge_index=torch.from_numpy(np.stack([parent, child])),
        forward_levels=_edges_by_level(problem.num_groups, parent, child),
        backward_levels=_edges_by_level(problem.num_groups, child, parent),
        ancestors=torch.from_numpy(ancestors.astype(np.float32)),
        descendants=torch.from_numpy(ancestors.T.astype(np.float32)),
        parallel=torch.from_numpy(other.astype(np.float32)),
    )


class PlacetoPolicy(nn.Module):
    """Scores every device for the current group.

    Placeto (Addanki et al. 2019, arXiv:1906.08879, section 3.2): each group's attributes are
    transformed; messages pass from parents to children and back; embeddings are pooled apart over
    the current group's ancestors, its descendants and the rest; a softmax over devices follows.

    Shapes:
        inputs: features (batch, num_groups, num_features), current (batch,)
        output: (batch, num_devices) logits
    """

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.transform = mlp([num_node_features(config.num_devices), width, width])
        self.forward_pass: Rounds | Sweep | None = None
        self.backward_pass: Rounds | Sweep | None = None
        if config.passing == "sweep":
            self.forward_pass, self.backward_pass = Sweep(width), Sweep(width)
        elif config.passing == "rounds":
            self.forward_pass = Rounds(width, config.rounds)
            self.backward_pass = Rounds(width, config.rounds)
        pools = 3 if config.pooling == "partition" else 1
        self.pools = nn.ModuleList(Aggregate(2 * width) for _ in range(pools))
        pooled = 2 * width * (pools + 1)
        self.head = mlp([pooled, 2 * width, 2 * width, config.num_devices])
        self.keep = nn.Parameter(torch.tensor(float(config.keep)))

    def forward(self, features: Tensor, current: Tensor, graph: Structure) -> Tensor:
        """Scores the devices.

        Args:
            features: (batch, num_groups, num_features) as `features.node_features` makes them.
            current: (batch,) the group whose device is chosen.
            graph: the structure of the problem that all states of the batch are of.

        Returns:
            (batch, num_devices) logits.
        """
        x = self.embed(features, graph)
        rows = torch.arange(len(current), device=current.device)
        if self.config.pooling == "partition":
            sets = [graph.ancestors[current], graph.descendants[current], graph.parallel[current]]
        else:
            sets = [features.new_ones(features.shape[:2])]
        pooled = [
            pool(x, members.unsqueeze(1)).squeeze(1)
            for pool, members in zip(self.pools, sets, strict=True)
        ]
        logits: Tensor = self.head(torch.cat([*pooled, x[rows, current]], dim=-1))
        present: Tensor = present_device(features[rows, current])
        return logits + self.keep * present

    def embed(self, features: Tensor, graph: Structure) -> Tensor:
        """(batch, num_groups, 2 * width) embeddings of the groups."""
        h = self.transform(features).relu()
        if self.forward_pass is None or self.backward_pass is None:
            return torch.cat([h, h], dim=-1)
        down = self.forward_pass(h, graph.edge_index, graph.forward_levels)
        up = self.backward_pass(h, graph.edge_index.flip(0), graph.backward_levels)
        return torch.cat([down, up], dim=-1)


def _edges_by_level(num_groups: int, parent: np.ndarray, child: np.ndarray) -> tuple[Tensor, ...]:
    level = levels(num_groups, parent, child)[child]
    return tuple(
        torch.from_numpy(np.flatnonzero(level == number))
        for number in range(1, level.max(initial=0) + 1)
    )
