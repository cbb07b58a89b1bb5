"""Wrappers that turn the flat observation into other libraries' graphs."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from placeto.envs.observation import Observation


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
