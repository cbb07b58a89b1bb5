"""Learned device placement: which device should run each op of a training step."""

from typing import TYPE_CHECKING

import gymnasium

from placeto.support.late import loaded_late

if TYPE_CHECKING:
    from placeto.cluster import (
        Channel,
        Cluster,
        Device,
        EndCost,
        Link,
        load_cluster,
        save_cluster,
    )
    from placeto.extraction.networkx_graph import from_networkx, to_networkx
    from placeto.graph import ComputationGraph, load_graph, save_graph
    from placeto.placement import Placement, load_placement
    from placeto.placement.module_devices import device_map
    from placeto.placement.pipeline_plan import PipelinePlan, load_pipeline
    from placeto.placement.pipelining import pipeline_stages
    from placeto.placers import place
    from placeto.placers.pipeline import plan_pipeline
    from placeto.problem import PlacementProblem
    from placeto.simulation import Schedule, simulate, step_times
    from placeto.support.errors import PlacetoError
    from placeto.zoo.instances import load_instance

__version__ = "0.1.0"

# Loaded when first asked for: `import placeto` stays fast, and free of torch and tensorflow.
_HOMES = {
    "cluster": (
        "Channel",
        "Cluster",
        "Device",
        "EndCost",
        "Link",
        "load_cluster",
        "save_cluster",
    ),
    "extraction.networkx_graph": ("from_networkx", "to_networkx"),
    "graph": ("ComputationGraph", "load_graph", "save_graph"),
    "placement.pipelining": ("pipeline_stages",),
    "placement": ("Placement", "load_placement"),
    "placement.module_devices": ("device_map",),
    "placement.pipeline_plan": ("PipelinePlan", "load_pipeline"),
    "placers": ("place",),
    "placers.pipeline": ("plan_pipeline",),
    "problem": ("PlacementProblem",),
    "simulation": ("Schedule", "simulate", "step_times"),
    "support.errors": ("PlacetoError",),
    "zoo.instances": ("load_instance",),
}

__all__ = [
    "Channel",
    "Cluster",
    "ComputationGraph",
    "Device",
    "EndCost",
    "Link",
    "PipelinePlan",
    "Placement",
    "PlacementProblem",
    "PlacetoError",
    "Schedule",
    "device_map",
    "from_networkx",
    "load_cluster",
    "load_graph",
    "load_instance",
    "load_pipeline",
    "load_placement",
    "pipeline_stages",
    "place",
    "plan_pipeline",
    "save_cluster",
    "save_graph",
    "simulate",
    "step_times",
    "to_networkx",
]

__getattr__ = loaded_late(__name__, _HOMES)

gymnasium.register(
    id="DevicePlacement-v0",
    entry_point="placeto.envs.device_placement:DevicePlacementEnv",
    vector_entry_point="placeto.envs.vector:DevicePlacementVectorEnv",
)
