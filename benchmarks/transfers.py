"""What a transfer costs the devices at its ends: `python -m benchmarks.transfers`.

It is the processor time of the two workers of `local-2` in steps that only send, less that in the
same steps without transfers. Writes `results/transfers.json` and `results/transfers.md`.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.output import save, table
from benchmarks.processes import processor_seconds
from placeto import ComputationGraph, PlacementProblem, load_cluster, simulate
from placeto.measurement import Effort, Runtime
from placeto.measurement.calibration.channels import Exchange
from placeto.measurement.calibration.machine import machine
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json
from placeto.support.units import format_bytes

# Tensors a step, bytes of each, and steps: the kernel counts processor time in hundredths.
SHAPES = (
    (1, 4, 2000), (16, 4, 500), (16, 64 * 2**10, 300), (4, 2**20, 300), (1, 16 * 2**20, 100),
    (1, 64 * 2**20, 40),
)  # fmt: skip
WARM_UP = 5


def measured() -> list[dict[str, Any]]:
    """A row a number and size of tensors: by how many seconds a step with transfers takes more."""
    rows, cluster = [], load_cluster("local-2")
    with tempfile.TemporaryDirectory() as folder, Runtime(cluster) as runtime:
        for count, size, steps in SHAPES:
            exchange = Exchange(cluster, count, size, Path(folder))
            here, there = (spent(runtime, exchange, consumer, steps) for consumer in (0, 1))
            added = {key: there[key] - here[key] for key in here}
            rows.append({"tensors": count, "bytes": size, "steps": steps} | added)
    return rows


def spent(runtime: Runtime, exchange: Exchange, consumer: int, steps: int) -> dict[str, float]:
    """Seconds a step: on the clock, and of the processor at the source and at the destination."""
    exchange.run(runtime, 0, consumer, 1, Effort(0, 1))  # the workers must be there
    workers = [pid for name, pid in runtime.process_ids.items() if name.startswith("worker")]
    read = [[processor_seconds(pid) for pid in workers]]
    for number in (1, 1 + steps):  # the first takes out what building a session takes
        measurement = exchange.run(runtime, 0, consumer, 1, Effort(WARM_UP, number))
        read.append([processor_seconds(pid) for pid in workers])
    source, destination = (np.diff(read, 2, axis=0)[0] / steps).tolist()
    return {"clock": measurement.step_time, "source": source, "destination": destination}


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table: a row a number and size of tensors."""
    header = ["tensors a step", "of", "step longer by, ms", "source works, ms", "destination, ms"]
    cells = [
        [str(row["tensors"]), format_bytes(row["bytes"])]
        + [f"{row[key] * 1e3:.2f}" for key in ("clock", "source", "destination")]
        for row in rows
    ]
    return table(header, cells)


@dataclass(frozen=True)
class Cost:
    """What transfers take of the processors at their ends: seconds a tensor, seconds a byte."""

    source: tuple[float, float]
    destination: tuple[float, float]


def cost_of(kept: Path) -> Cost:
    """The cost by the measurements that a file has; they are made if it is not there."""
    if not kept.exists():
        write_json(kept, {"rows": measured()})
    return fit_cost(read_json(kept)["rows"])


def fit_cost(rows: list[dict[str, Any]]) -> Cost:
    """Least squares over rows of `measured`, of errors relative to each."""
    terms = np.array([[row["tensors"], row["tensors"] * row["bytes"]] for row in rows], np.float64)
    ends = []
    for end in ("source", "destination"):
        seconds = np.array([row[end] for row in rows])
        weight = 1 / np.maximum(seconds, 1e-5)  # where nearly nothing was spent, it says nothing
        ends.append(tuple(nnls(terms * weight[:, None], seconds * weight)[0].tolist()))
    return Cost(*ends)


def held_step_time(problem: PlacementProblem, devices: Ints, cost: Cost) -> float:
    """Seconds of a step if transfers held the devices at both ends, which the semantics leave out.

    Each transfer, of a tensor to a destination, is two ops without an order between them, one at
    its source and one at its destination, as a tensor is sent in pieces: both begin when the tensor
    is there and the device has time, and the consumers wait for both. Channels carry nothing.
    Devices are of one kind. `benchmarks.fidelity` judges it.
    """
    graph = problem.graph
    of_op = np.asarray(devices)[problem.op_group]
    reader = of_op[graph.edge_consumer]
    crossing = of_op[graph.tensor_producer[graph.edge_tensor]] != reader
    received = np.stack([graph.edge_tensor[crossing], reader[crossing]], axis=1)
    pairs, transfer = np.unique(received, axis=0, return_inverse=True)
    transfer = transfer.ravel()
    count, sent = len(pairs), pairs[:, 0]
    producer, size = graph.tensor_producer[sent], graph.tensor_bytes[sent]
    sends, receives = graph.num_ops + np.arange(2 * count).reshape(2, count)
    # Without bytes: from producers to receives, from sends and from receives to consumers.
    begun, gone, come = graph.num_tensors + np.arange(3 * count).reshape(3, count)
    edge_tensor, edge_consumer = graph.edge_tensor.copy(), graph.edge_consumer
    edge_tensor[crossing] = come[transfer]
    (kind,) = problem.cluster.kinds
    names = [f"transfer {number}" for number in range(2 * count)]
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


if __name__ == "__main__":
    found = measured()
    save("transfers", {"machine": machine(), "rows": found}, markdown(found), indent=1)
