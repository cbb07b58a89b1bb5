"""Step times if transfers held the devices at their ends, which the semantics leave out.

A transfer between processors is work for both: it is serialized, copied and sent here, received
and copied there. Here each transfer is an op on its source, then one of the channel, then an op on
its destination, simulated by semantics version 1 like any other. That is a proposal to be judged
by measurements, see `benchmarks.fidelity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import transfers
from placeto.files import read_json, write_json
from placeto.graph import ComputationGraph, Ints
from placeto.problem import PlacementProblem
from placeto.simulation import simulate

ENDS = ("source", "wire", "destination")


@dataclass(frozen=True)
class Cost:
    """What transfers take, as pairs: seconds a tensor, seconds a byte.

    Attributes:
        source: of the source's processor.
        wire: in between.
        destination: of the destination's processor.
    """

    source: tuple[float, float]
    wire: tuple[float, float]
    destination: tuple[float, float]


def cost_of(kept: Path) -> Cost:
    """The cost by the measurements that a file has; they are made if it is not there."""
    if not kept.exists():
        write_json(kept, {"rows": transfers.measured()})
    return fit_cost(read_json(kept)["rows"])


def fit_cost(rows: Sequence[dict[str, Any]]) -> Cost:
    """Least squares over the rows of `benchmarks.transfers`, of errors relative to each."""
    from scipy.optimize import nnls

    count = np.array([row["tensors"] for row in rows], dtype=np.float64)
    size = np.array([row["bytes"] for row in rows], dtype=np.float64)
    seconds = {key: np.array([row[key] for row in rows]) for key in ("source", "destination")}
    wire = np.array([row["clock"] for row in rows]) - sum(seconds.values())
    seconds["wire"] = np.maximum(wire, 0.0)
    terms = np.stack([count, count * size], axis=1)
    # Where next to nothing was spent, a relative error says nothing.
    weight = {key: 1 / np.maximum(each, 1e-5) for key, each in seconds.items()}
    found = {key: nnls(terms * weight[key][:, None], seconds[key] * weight[key])[0] for key in ENDS}
    return Cost(*((float(found[key][0]), float(found[key][1])) for key in ENDS))


def held_step_time(problem: PlacementProblem, devices: Ints, cost: Cost) -> float:
    """Seconds of a step; one transfer per tensor and destination.

    Args:
        problem: on devices of one kind.
        devices: (num_groups,) device of each group.
        cost: of a transfer.
    """
    graph = problem.graph
    of_op = np.asarray(devices)[problem.op_group]
    source = of_op[graph.tensor_producer[graph.edge_tensor]]
    destination = of_op[graph.edge_consumer]
    crossing = source != destination
    pairs, copy = np.unique(
        np.stack([graph.edge_tensor[crossing], destination[crossing]], axis=1),
        axis=0,
        return_inverse=True,
    )
    count, sent = len(pairs), pairs[:, 0]
    size = graph.tensor_bytes[sent]
    sends = graph.num_ops + np.arange(count)
    receives = sends + count
    there = graph.num_tensors + np.arange(count)  # tensors from a send to its receive
    copies = there + count  # tensors from a receive to the consumers
    edge_tensor = graph.edge_tensor.copy()
    edge_tensor[crossing] = copies[copy.reshape(-1)]
    (kind,) = problem.cluster.kinds
    expanded = ComputationGraph(
        name=graph.name,
        op_names=[
            *graph.op_names,
            *(f"{end} {number}" for end in ("send", "receive") for number in range(count)),
        ],
        op_types=[*graph.op_types, *["Transfer"] * (2 * count)],
        op_seconds={
            kind: np.concatenate(
                [
                    graph.op_seconds[kind],
                    cost.source[0] + cost.source[1] * size,
                    cost.destination[0] + cost.destination[1] * size,
                ]
            )
        },
        tensor_producer=np.concatenate([graph.tensor_producer, sends, receives]),
        tensor_bytes=np.concatenate([graph.tensor_bytes, size, size]),
        edge_tensor=np.concatenate([edge_tensor, sent, there]),
        edge_consumer=np.concatenate([graph.edge_consumer, sends, receives]),
    )
    wire = {
        "bandwidth": 1 / max(cost.wire[1], 1e-13),
        "latency_seconds": cost.wire[0],
        "overhead_seconds": 0.0,
    }
    channels = tuple(replace(channel, **wire) for channel in problem.cluster.channels)
    placed = np.concatenate([of_op, of_op[graph.tensor_producer[sent]], pairs[:, 1]])
    held = PlacementProblem(expanded, replace(problem.cluster, channels=channels), "none")
    return float(simulate(held, placed).step_time)
