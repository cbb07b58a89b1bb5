"""What a policy sees, as arrays: the one source for environments and networks."""

from pathlib import Path

from placeto.features.attributes import (
    Features,
    StaticFeatures,
    node_feature_names,
    node_features,
    num_node_features,
    present_device,
    static_features,
    update_node_features,
)
from placeto.jit import drop_stale_kernels

drop_stale_kernels(Path(__file__).parent, "simulation")

__all__ = [
    "Features",
    "StaticFeatures",
    "node_feature_names",
    "node_features",
    "num_node_features",
    "present_device",
    "static_features",
    "update_node_features",
]
