"""Environments: DevicePlacement-v0, its vector form, and wrappers."""

from placeto.envs.device_placement import DevicePlacementEnv
from placeto.envs.observation import GraphSpaceWrapper, PyGWrapper
from placeto.envs.vector import DevicePlacementVectorEnv

__all__ = ["DevicePlacementEnv", "DevicePlacementVectorEnv", "GraphSpaceWrapper", "PyGWrapper"]
