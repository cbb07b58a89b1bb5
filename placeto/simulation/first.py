"""The kernel, compiled before there is anything to simulate."""

import numpy as np

from placeto.cluster import Channel, Cluster, Device
from placeto.graph import ComputationGraph
from placeto.problem import PlacementProblem
from placeto.simulation.simulate import simulate_many


def compile_kernel() -> None:
    """Simulates a step of two ops, so that the kernel is compiled, or read from disk."""
    graph = ComputationGraph(
        name="first",
        op_names=["a", "b"],
        op_types=["Op", "Op"],
        op_seconds={"any": np.ones(2)},
        tensor_producer=np.array([0]),
        tensor_bytes=np.array([1]),
        edge_tensor=np.array([0]),
        edge_consumer=np.array([1]),
    )
    devices = (Device("a", "any", 10), Device("b", "any", 10))
    channels = (Channel("there", ("a",), ("b",), 1.0), Channel("back", ("b",), ("a",), 1.0))
    problem = PlacementProblem(graph, Cluster("first", devices, channels), "none")
    simulate_many(problem, np.array([[0, 1]]))
