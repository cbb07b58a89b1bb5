"""Observations: graphs of any size in arrays of fixed shapes; wrappers for other libraries."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from placeto.envs.features import StaticFeatures, num_node_features
from placeto.envs.features.devices import DEVICE_FEATURES
from placeto.envs.rules import check_count
from placeto.problem import PlacementProblem
from placeto.support.errors import PlacetoError

Observation = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
LARGEST = 1e6  # no device feature comes near: most are shares, some counts of tensors


def observation_space(
    problems: Sequence[PlacementProblem], max_groups: int | None, max_edges: int | None
) -> spaces.Dict:
    """The space of the observations of an environment of some problems on one cluster.

    Groups and edges are padded to what is asked for, or to the largest needed.

    Raises:
        PlacetoError: no whole number, or less than what is needed, was asked for.
    """
    groups = _padded("max_groups", max_groups, [each.num_groups for each in problems])
    edges = _padded("max_edges", max_edges, [len(each.group_edges[0]) for each in problems])
    devices = problems[0].num_devices
    seen = (devices, DEVICE_FEATURES)
    return spaces.Dict(
        {
            "node_features": spaces.Box(-1, 1, (groups, num_node_features(devices)), np.float32),
            "edge_index": spaces.Box(0, max(groups - 1, 1), (2, edges), np.int64),
            "edge_features": spaces.Box(0, 1, (edges, 1), np.float32),
            "node_mask": spaces.MultiBinary(groups),
            "edge_mask": spaces.MultiBinary(edges),
            "current_node": spaces.Discrete(groups),
            "action_mask": spaces.MultiBinary(devices),
            "device_features": spaces.Box(-LARGEST, LARGEST, seen, np.float32),
        }
    )


def empty_observations(batch: int, space: spaces.Dict) -> Arrays:
    """Zeros for the observations of a batch, (batch, ...) for each key of the space."""
    return {key: np.zeros((batch, *(part.shape or ())), part.dtype) for key, part in space.items()}


def write_graph(
    observations: Arrays, row: int, problem: PlacementProblem, static: StaticFeatures
) -> None:
    """Writes into a row of a batch what of its observations no step changes: the padded graph."""
    source, target, _ = problem.group_edges
    edges, groups = len(source), problem.num_groups
    for key in ("edge_index", "edge_features", "node_mask", "edge_mask", "node_features"):
        observations[key][row] = 0
    observations["edge_index"][row, :, :edges] = source, target
    observations["edge_features"][row, :edges] = static.edge
    observations["node_mask"][row, :groups] = 1
    observations["edge_mask"][row, :edges] = 1


class GraphSpaceWrapper(gymnasium.ObservationWrapper[spaces.GraphInstance, Any, Observation]):
    """Observations as a `spaces.GraphInstance`: no padding, edges as rows.

    The node features already say which group is the current one; `action_masks` of the
    environment tells the allowed devices.
    """

    def __init__(self, env: gymnasium.Env[Observation, Any]) -> None:
        super().__init__(env)
        space: Any = env.observation_space
        nodes, edges = (space[f"{part}_features"].shape[1:] for part in ("node", "edge"))
        self.observation_space = spaces.Graph(
            spaces.Box(-1, 1, nodes, np.float32), spaces.Box(0, 1, edges, np.float32)
        )

    def observation(self, observation: Observation) -> spaces.GraphInstance:
        """Cuts the padding off."""
        nodes, edges = observation["node_mask"] > 0, observation["edge_mask"] > 0
        return spaces.GraphInstance(
            nodes=observation["node_features"][nodes],
            edges=observation["edge_features"][edges],
            edge_links=observation["edge_index"][:, edges].T,
        )


class PyGWrapper(gymnasium.ObservationWrapper[Any, Any, Observation]):
    """Observations as `torch_geometric.data.Data`, without padding.

    `x` (num_groups, F), `edge_index` (2, num_edges), `edge_attr` (num_edges, 1), `current_node`
    (1,), `action_mask` (1, num_devices) bool, `device_features` (1, num_devices, P). Gymnasium has
    no space of such objects: the observation space stays that of the environment.
    """

    def observation(self, observation: Observation) -> Any:
        """As PyTorch Geometric's."""
        import torch
        from torch_geometric.data import Data

        nodes, edges = observation["node_mask"] > 0, observation["edge_mask"] > 0
        return Data(
            x=torch.from_numpy(observation["node_features"][nodes]),
            edge_index=torch.from_numpy(observation["edge_index"][:, edges]),
            edge_attr=torch.from_numpy(observation["edge_features"][edges]),
            current_node=torch.tensor([int(observation["current_node"])]),
            action_mask=torch.from_numpy(observation["action_mask"][None] > 0),
            device_features=torch.from_numpy(observation["device_features"][None]),
        )


def _padded(name: str, asked: int | None, needed: Sequence[int]) -> int:
    least = max(1, *needed)
    if asked is None:
        return least
    check_count(name, asked)
    if asked < least:
        raise PlacetoError(f"{name} is {asked}, but the largest graph needs {least}")
    return asked
