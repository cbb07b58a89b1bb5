"""The form of observations: graphs of any size in arrays of fixed shapes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from placeto.envs.features import StaticFeatures, num_node_features
from placeto.envs.features.devices import DEVICE_FEATURES
from placeto.envs.rules import check_count
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError

Observation = dict[str, Any]
LARGEST = 1e6  # no device feature comes near: most are shares, some counts of tensors


def padded_size(name: str, asked: int | None, needed: Iterable[int]) -> int:
    """What one axis of the observations is padded to: what was asked for, or the largest needed.

    Raises:
        PlacetoError: no whole number, or less than what is needed, was asked for.
    """
    least = max(1, *needed)
    if asked is None:
        return least
    check_count(name, asked)
    if asked < least:
        raise PlacetoError(f"{name} is {asked}, but the largest graph needs {least}")
    return asked


def observation_space(max_groups: int, max_edges: int, num_devices: int) -> spaces.Dict:
    """The space of the observations of one environment."""
    shape = (max_groups, num_node_features(num_devices))
    return spaces.Dict(
        {
            "node_features": spaces.Box(-1, 1, shape, np.float32),
            "edge_index": spaces.Box(0, max(max_groups - 1, 1), (2, max_edges), np.int64),
            "edge_features": spaces.Box(0, 1, (max_edges, 1), np.float32),
            "node_mask": spaces.MultiBinary(max_groups),
            "edge_mask": spaces.MultiBinary(max_edges),
            "current_node": spaces.Discrete(max_groups),
            "action_mask": spaces.MultiBinary(num_devices),
            "device_features": spaces.Box(
                -LARGEST, LARGEST, (num_devices, DEVICE_FEATURES), np.float32
            ),
        }
    )


def empty_observations(batch: int, space: spaces.Dict) -> dict[str, NDArray[Any]]:
    """Zeros for the observations of a batch, (batch, ...) for each key of the space."""
    return {key: np.zeros((batch, *(part.shape or ())), part.dtype) for key, part in space.items()}


def write_graph(
    observations: dict[str, NDArray[Any]],
    row: int,
    problem: PlacementProblem,
    static: StaticFeatures,
) -> None:
    """Writes into a row of a batch what of its observations no step changes: the padded graph.

    Args:
        observations: of the batch.
        row: which.
        problem: whose groups are the graph's nodes.
        static: its features.
    """
    source, target, _ = problem.group_edges
    edges, groups = len(source), problem.num_groups
    for key in ("edge_index", "edge_features", "node_mask", "edge_mask", "node_features"):
        observations[key][row] = 0
    observations["edge_index"][row, :, :edges] = source, target
    observations["edge_features"][row, :edges] = static.edge
    observations["node_mask"][row, :groups] = 1
    observations["edge_mask"][row, :edges] = 1
