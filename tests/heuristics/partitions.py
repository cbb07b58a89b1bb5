"""Graphs whose best partitions are known, and what makes a partition a good one."""

from dataclasses import replace

import numpy as np

from placeto import Channel, Cluster, Device, PlacementProblem, load_cluster, load_graph
from placeto.heuristics.partition import PartitionGraph
from tests.builders import make_cluster, make_graph


def inception(cluster: str, grouping: str = "papers") -> PlacementProblem:
    return PlacementProblem(load_graph("inception_v3"), load_cluster(cluster), grouping)


def two_cliques(size: int = 5, devices: int = 2, **pins: int) -> PlacementProblem:
    """Two cliques of groups that take a second and exchange 10 bytes, joined by one byte."""
    names = [f"{clique}{number}" for clique in "ab" for number in range(size)]
    tensors = [
        (f"{clique}{low}", 10, [f"{clique}{high}"])
        for clique in "ab"
        for low in range(size)
        for high in range(low + 1, size)
    ]
    graph = make_graph(dict.fromkeys(names, 1.0), [*tensors, ("a0", 1, ["b0"])])
    numbers = {names.index(name): device for name, device in pins.items()}
    return PlacementProblem(graph, make_cluster(devices), "none", pins=numbers)


def slow_cpu() -> PlacementProblem:
    """Ninety groups by themselves that each of two GPUs runs in 1 s and a CPU in 4 s."""
    seconds = {"gpu": np.ones(90), "cpu": np.full(90, 4.0)}
    graph = replace(make_graph({f"op{op}": 1.0 for op in range(90)}), op_seconds=seconds)
    names = ("gpu0", "gpu1", "cpu0")
    devices = tuple(Device(name, name[:3], 10**9) for name in names)
    cluster = Cluster("slow cpu", devices, (Channel("bus", names, names, 1.0),))
    return PlacementProblem(graph, cluster, "none")


def check_balance(
    graph: PartitionGraph, parts: np.ndarray, shares: np.ndarray, imbalance: float
) -> None:
    """No part is above its share by more than the imbalance, but for one vertex."""
    load = np.bincount(parts, weights=graph.vertex_weight, minlength=len(shares))
    total = graph.vertex_weight.sum()
    assert (load <= (1 + imbalance) * shares * total + graph.vertex_weight.max()).all()


def cut_weight(graph: PartitionGraph, parts: np.ndarray) -> int:
    """The weight of the edges between vertices of different parts."""
    apart = np.repeat(parts, np.diff(graph.start)) != parts[graph.neighbour]
    return int(graph.edge_weight[apart].sum()) // 2


def best_random_cut(graph: PartitionGraph, shares: np.ndarray, draws: int = 200) -> int:
    rng = np.random.default_rng(0)
    drawn = (rng.choice(len(shares), len(graph.vertex_weight), p=shares) for _ in range(draws))
    return min(cut_weight(graph, parts) for parts in drawn)
