"""Step times if transfers held the devices at both ends, which the semantics leave out.

Between processors a transfer is work for both: one serializes and sends, the other receives and
copies, at the same time, as a tensor is sent in pieces. Here each transfer is two ops without an
order between them, one at its source and one at its destination, that both begin when the tensor is
there and the device has time, and the consumers wait for both. Channels carry nothing. Simulated
like that by semantics version 1, it is a proposal to be judged by measurements, see
`benchmarks.fidelity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import transfers
from placeto.graph import ComputationGraph
from placeto.problem import PlacementProblem
from placeto.simulation import simulate
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json


@dataclass(frozen=True)
class Cost:
    """What transfers take of the processors at their ends: seconds a tensor, seconds a byte."""

    source: tuple[float, float]
    destination: tuple[float, float]


def cost_of(kept: Path) -> Cost:
    """The cost by the measurements that a file has; they are made if it is not there."""
    if not kept.exists():
        write_json(kept, {"rows": transfers.measured()})
    return fit_cost(read_json(kept)["rows"])


def fit_cost(rows: Sequence[dict[str, Any]]) -> Cost:
    """Least squares over the rows of `benchmarks.transfers`, of errors relative to each."""
    from scipy.optimize import nnls

    terms = np.array([[row["tensors"], row["tensors"] * row["bytes"]] for row in rows], np.float64)
    ends = []
    for end in ("source", "destination"):
        seconds = np.array([row[end] for row in rows])
        weight = 1 / np.maximum(seconds, 1e-5)  # where nearly nothing was spent, it says nothing
        tensor, byte = nnls(terms * weight[:, None], seconds * weight)[0].tolist()
        ends.append((tensor, byte))
    return Cost(*ends)


def held_step_time(problem: PlacementProblem, devices: Ints, cost: Cost) -> float:
    """Seconds of a step in which transfers hold the devices at their ends.

    Args:
        problem: on devices of one kind.
        devices: (num_groups,) device of each group.
        cost: of a transfer; there is one per tensor and destination.
    """
    graph = problem.graph
    of_op = np.asarray(devices)[problem.op_group]
    reader = of_op[graph.edge_consumer]
    crossing = of_op[graph.tensor_producer[graph.edge_tensor]] != reader
    received = np.stack([graph.edge_tensor[crossing], reader[crossing]], axis=1)
    pairs, transfer = np.unique(received, axis=0, return_inverse=True)
    transfer = transfer.reshape(-1)
    count, sent = len(pairs), pairs[:, 0]
    producer, size = graph.tensor_producer[sent], graph.tensor_bytes[sent]
    sends = graph.num_ops + np.arange(count)
    receives = sends + count
    # Without bytes: from producers to receives, from sends and from receives to consumers.
    begun = graph.num_tensors + np.arange(count)
    gone, come = begun + count, begun + 2 * count
    edge_tensor, edge_consumer = graph.edge_tensor.copy(), graph.edge_consumer
    edge_tensor[crossing] = come[transfer]
    (kind,) = problem.cluster.kinds
    names = [f"{end} {number}" for end in ("send", "receive") for number in range(count)]
    ends = [tensor + byte * size for tensor, byte in (cost.source, cost.destination)]
    expanded = ComputationGraph(
        name=graph.name,
        op_names=[*graph.op_names, *names],
        op_types=[*graph.op_types, *["Transfer"] * (2 * count)],
        op_seconds={kind: np.concatenate([graph.op_seconds[kind], *ends])},
        tensor_producer=np.concatenate([graph.tensor_producer, producer, sends, receives]),
        tensor_bytes=np.concatenate([graph.tensor_bytes, np.zeros(3 * count, dtype=np.int64)]),
        edge_tensor=np.concatenate([edge_tensor, sent, begun, gone[transfer]]),
        edge_consumer=np.concatenate([edge_consumer, sends, receives, edge_consumer[crossing]]),
    )
    free = {"bandwidth": 1e13, "latency_seconds": 0.0, "overhead_seconds": 0.0}
    channels = tuple(replace(channel, **free) for channel in problem.cluster.channels)
    placed = np.concatenate([of_op, of_op[producer], pairs[:, 1]])
    cluster = replace(problem.cluster, channels=channels)
    held = PlacementProblem(expanded, cluster, np.arange(expanded.num_ops))
    return float(simulate(held, placed).step_time)
