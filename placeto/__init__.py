"""Learned device placement: which device should run each op of a training step."""

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from placeto.cluster import Channel, Cluster, Device, load_cluster, save_cluster
    from placeto.extraction.networkx_graph import from_networkx, to_networkx
    from placeto.graph import ComputationGraph, load_graph, save_graph
    from placeto.placement import Placement, load_placement
    from placeto.placement.module_devices import device_map
    from placeto.placers import place
    from placeto.problem import PlacementProblem
    from placeto.simulation import Schedule, simulate, step_times
    from placeto.support.errors import PlacetoError

__version__ = "0.1.0"

# Loaded when first asked for: `import placeto` stays fast, and free of torch and tensorflow.
_HOMES = {
    "Channel": "cluster",
    "Cluster": "cluster",
    "ComputationGraph": "graph",
    "Device": "cluster",
    "Placement": "placement",
    "PlacementProblem": "problem",
    "PlacetoError": "support.errors",
    "Schedule": "simulation",
    "device_map": "placement.module_devices",
    "from_networkx": "extraction.networkx_graph",
    "load_cluster": "cluster",
    "load_graph": "graph",
    "load_placement": "placement",
    "place": "placers",
    "save_cluster": "cluster",
    "save_graph": "graph",
    "simulate": "simulation",
    "step_times": "simulation",
    "to_networkx": "extraction.networkx_graph",
}

__all__ = [
    "Channel",
    "Cluster",
    "ComputationGraph",
    "Device",
    "Placement",
    "PlacementProblem",
    "PlacetoError",
    "Schedule",
    "device_map",
    "from_networkx",
    "load_cluster",
    "load_graph",
    "load_placement",
    "place",
    "save_cluster",
    "save_graph",
    "simulate",
    "step_times",
    "to_networkx",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'placeto' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"placeto.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


gymnasium.register(
    id="DevicePlacement-v0",
    entry_point="placeto.envs.device_placement:DevicePlacementEnv",
    vector_entry_point="placeto.envs.vector:DevicePlacementVectorEnv",
)
