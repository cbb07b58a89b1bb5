"""What a policy sees, as arrays: the one source for environments and networks."""

from placeto.envs.features.attributes import (
    StaticFeatures,
    node_feature_names,
    node_features,
    num_node_features,
    present_device,
    static_features,
    update_node_features,
)
from placeto.support.arrays import Features

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
