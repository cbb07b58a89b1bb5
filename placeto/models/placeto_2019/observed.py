"""Placeto's networks on the observations of `DevicePlacement-v0`, for any RL library."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from placeto.models.network import mlp
from placeto.models.placeto_2019.network import GraphReader, Placeto2019Policy, Placeto2019Shape
from placeto.models.placeto_2019.structure import Structure, structure_of_edges

Observations = Mapping[str, Tensor]

# Structures that are kept: one takes milliseconds, and is asked for at every step.
MOST_STRUCTURES = 64


class ObservedPolicy(nn.Module):
    """Placeto's policy, and a critic beside it, that read observations.

    Observations are those of `DevicePlacement-v0` as tensors, with batch dimensions in front or
    none, of different graphs if need be. `edge_features` is not read: of an edge, Placeto's
    policy knows only where it leads.

    Args:
        config: shape of the policy.

    Shapes:
        inputs: an observation, each of its tensors (*batch, ...)
        outputs: logits (*batch, num_devices), value (*batch,)

    Attributes:
        policy: the policy, of the shape that `placeto train` trains.
        value: the critic, on what the policy's head reads.
    """

    def __init__(self, config: Placeto2019Shape) -> None:
        super().__init__()
        self.policy = Placeto2019Policy(config)
        width = self.policy.summary_width
        self.value = mlp([width, width // 2, 1])

    def forward(self, observations: Observations) -> tuple[Tensor, Tensor]:
        """Logits and value; where `action_mask` forbids a device, the least logit there is."""
        batch, flat = _flattened(observations)
        summary = _read(self.policy, flat)
        logits = self.policy.score(summary, flat["node_features"], flat["current_node"])
        forbidden = flat["action_mask"] == 0
        # Not minus infinity, of which the entropy is not a number.
        logits = logits.masked_fill(forbidden, torch.finfo(logits.dtype).min)
        return logits.view(*batch, -1), self.value(summary).view(batch)


def read_observations(reader: GraphReader, observations: Observations) -> Tensor:
    """(*batch, reader.summary_width) what a reader makes of `ObservedPolicy`'s observations."""
    batch, flat = _flattened(observations)
    return _read(reader, flat).view(*batch, -1)


def _flattened(observations: Observations) -> tuple[torch.Size, dict[str, Tensor]]:
    """The shape of the batch, and the observations with one batch dimension."""
    batch = observations["current_node"].shape
    flat = {key: part.reshape(-1, *part.shape[len(batch) :]) for key, part in observations.items()}
    return batch, flat | {"current_node": flat["current_node"].long()}


def _read(reader: GraphReader, flat: Observations) -> Tensor:
    features, current = flat["node_features"], flat["current_node"]
    rows, read = [], []
    for mine, graph in _by_graph(flat):
        groups = graph.relatives.shape[-1]
        rows.append(mine)
        read.append(reader.read(features[mine, :groups], current[mine], graph))
    return torch.cat(read)[torch.cat(rows).argsort()]


def _by_graph(flat: Observations) -> Iterator[tuple[Tensor, Structure]]:
    """The rows of a batch that are of one graph, and its structure, graph after graph."""
    counts = [flat[mask].long().sum(dim=1, keepdim=True) for mask in ("node_mask", "edge_mask")]
    graphs = torch.cat([*counts, flat["edge_index"].long().flatten(1)], dim=1)
    left = torch.arange(len(graphs), device=graphs.device)
    while len(left):
        graph = graphs[left[0]]
        same = (graphs[left] == graph).all(dim=1)
        yield left[same], _structure(graph.cpu().numpy().tobytes(), graph.device)
        left = left[~same]


@lru_cache(maxsize=MOST_STRUCTURES)
def _structure(graph: bytes, device: torch.device) -> Structure:
    """The structure of a row of `_by_graph`."""
    groups, edges, *_ = numbers = np.frombuffer(graph, dtype=np.int64)
    source, target = numbers[2:].reshape(2, -1)[:, :edges]
    # Libraries try networks on zeros, where there are no groups at all.
    moved: Structure = _moved(structure_of_edges(max(int(groups), 1), source, target), device)
    return moved


def _moved(value: Any, device: torch.device) -> Any:
    """Tensors, and tuples of them, on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    parts = [_moved(part, device) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
