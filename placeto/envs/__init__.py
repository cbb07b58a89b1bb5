"""Environments: DevicePlacement-v0 and its wrappers."""

from placeto.envs.device_placement import DevicePlacementEnv
from placeto.envs.wrappers import GraphSpaceWrapper, PyGWrapper

__all__ = ["DevicePlacementEnv", "GraphSpaceWrapper", "PyGWrapper"]
