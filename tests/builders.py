"""Small graphs and clusters in few lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem


def make_graph(
    seconds: Mapping[str, float],
    tensors: Sequence[tuple[str, int, Sequence[str]]] = (),
    **columns: Any,
) -> ComputationGraph:
    """A graph of named ops with one kind, `k`; tensors are (producer, bytes, consumers).

    Further columns (`param_bytes`, `temp_bytes`, `colocation`) are dicts from op names.
    """
    names = list(seconds)
    empty = {"param_bytes": 0, "temp_bytes": 0, "colocation": -1}
    return ComputationGraph(
        name="by hand",
        op_names=names,
        op_types=["Op"] * len(names),
        op_seconds={"k": np.array(list(seconds.values()), dtype=float)},
        tensor_producer=np.array([names.index(t[0]) for t in tensors], dtype=np.int64),
        tensor_bytes=np.array([t[1] for t in tensors], dtype=np.int64),
        edge_tensor=np.array([i for i, t in enumerate(tensors) for _ in t[2]], dtype=np.int64),
        edge_consumer=np.array([names.index(c) for t in tensors for c in t[2]], dtype=np.int64),
        **{
            key: np.array([values.get(name, empty[key]) for name in names])
            for key, values in columns.items()
        },
    )


def make_cluster(
    num_devices: int,
    *,
    bandwidth: float = 1.0,
    latency: float = 0.0,
    overhead: float = 0.0,
    launch_overhead: float = 0.0,
    memory: int = 10**9,
    multicast: bool = False,
    shared: bool = False,
) -> Cluster:
    """Equal devices of kind `k`; one outgoing channel each, or one `shared` by all."""
    names = tuple(f"d{index}" for index in range(num_devices))
    ends = (
        [(names, names)] if shared else [((n,), tuple(m for m in names if m != n)) for n in names]
    )
    return Cluster(
        "by hand",
        tuple(Device(name, "k", memory, launch_overhead) for name in names),
        tuple(
            Channel(f"c{index}", sources, to, bandwidth, latency, overhead, multicast)
            for index, (sources, to) in enumerate(ends)
        )
        if num_devices > 1
        else (),
    )


def make_problem(graph: ComputationGraph, cluster: Cluster) -> PlacementProblem:
    """One op a group."""
    return PlacementProblem(graph, cluster, "none")


def make_pipelined(microbatches: int = 4, kept: int = 0, memory: int = 10**9) -> PlacementProblem:
    """Two layers on two devices, one op a group; 1 and 2 s forward, 1 and 2 s back.

    Each layer's way back reads `kept` bytes of its way there.
    """
    seconds, tensors, microbatch, phase = {}, [], [], []
    for part in range(microbatches):
        path = [f"{part}/{name}" for name in ("f0", "f1", "b1", "b0")]
        seconds |= dict(zip(path, (1.0, 2.0, 1.0, 2.0), strict=True))
        tensors += [(one, 0, [other]) for one, other in pairwise(path)]
        tensors += [(path[0], kept, [path[3]]), (path[1], kept, [path[2]])]
        microbatch += [part] * 4
        phase += [0, 0, 1, 1]
    copy_of = [-1] * 4 + [0, 1, 2, 3] * (microbatches - 1)
    graph = replace(make_graph(seconds, tensors), microbatch=microbatch, copy_of=copy_of,
                    phase=phase)  # fmt: skip
    return make_problem(graph, make_cluster(2, memory=memory))
