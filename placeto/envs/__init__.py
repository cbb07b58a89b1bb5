"""Environments: DevicePlacement-v0, its vector form, and wrappers."""

from placeto.envs.device_placement import DevicePlacementEnv
from placeto.envs.vector import DevicePlacementVectorEnv
from placeto.envs.wrappers import GraphSpaceWrapper, PyGWrapper

__all__ = ["DevicePlacementEnv", "DevicePlacementVectorEnv", "GraphSpaceWrapper", "PyGWrapper"]
