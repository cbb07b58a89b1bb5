"""Toy problems whose best placement is known.

Ops take 10 ms on a device of kind `slow` and 5 ms on one of kind `fast`; tensors are of 1 MB, and
take 1 ms on any channel. Two devices each.
"""

import numpy as np

from placeto.cluster import Channel, Cluster, Device
from placeto.graph import ComputationGraph
from placeto.problem import PlacementProblem


def chain() -> PlacementProblem:
    """Four ops in a row: best is one device, 40 ms."""
    return _problem("chain", 4, [(0, 1), (1, 2), (2, 3)])


def fork() -> PlacementProblem:
    """One op that feeds three: best is one of the three elsewhere, 30 ms; one device takes 40."""
    return _problem("fork", 4, [(0, 1), (0, 2), (0, 3)])


def diamond() -> PlacementProblem:
    """Two branches of two ops between a source and a sink: best is 41 ms; one device takes 60.

    Source and one branch are on one device, the other branch and the sink on the other.
    """
    return _problem("diamond", 6, [(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)])


def unequal() -> PlacementProblem:
    """The fork on a slow and a fast device: best is one of the three on the slow, 16 ms.

    The fast device alone takes 20 ms, the slow one 40.
    """
    return _problem("unequal", 4, [(0, 1), (0, 2), (0, 3)], ("slow", "fast"))


def _problem(
    name: str, num_ops: int, edges: list[tuple[int, int]], kinds: tuple[str, str] = ("slow", "slow")
) -> PlacementProblem:
    producers = sorted({producer for producer, _ in edges})
    graph = ComputationGraph(
        name=name,
        op_names=[f"op{number}" for number in range(num_ops)],
        op_types=["Toy"] * num_ops,
        op_seconds={"slow": np.full(num_ops, 10e-3), "fast": np.full(num_ops, 5e-3)},
        tensor_producer=np.array(producers),
        tensor_bytes=np.full(len(producers), 10**6),
        edge_tensor=np.array([producers.index(producer) for producer, _ in edges]),
        edge_consumer=np.array([consumer for _, consumer in edges]),
    )
    devices = tuple(Device(f"device{n}", kind, 2**30) for n, kind in enumerate(kinds))
    there = Channel("there", ("device0",), ("device1",), 1e9)
    back = Channel("back", ("device1",), ("device0",), 1e9)
    return PlacementProblem(graph, Cluster("toy", devices, (there, back)), grouping="none")
