"""What a transfer costs the devices at its ends: `python -m benchmarks.transfers`.

The simulation lets a transfer run beside a device's ops at no cost to them. Where gRPC carries
tensors between CPU workers, both ends work for it: this is the processor time of the two workers
of `local-2` in steps that do nothing but send, less that in the same steps without transfers.
Processor time, unlike the clock's, hardly depends on what else the machine does. Writes
`results/transfers.json` and `results/transfers.md`.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import save, table_of
from benchmarks.processes import processor_seconds
from placeto import ComputationGraph, PlacementProblem, load_cluster, simulate
from placeto.measurement import Effort, Runtime
from placeto.measurement.calibration.channels import Exchange
from placeto.measurement.calibration.machine import machine
from placeto.support.arrays import Ints
from placeto.support.files import read_json, write_json
from placeto.support.units import format_bytes

CLUSTER = "local-2"
# Tensors a step, bytes of each, and steps: the kernel counts processor time in hundredths.
SHAPES = (
    (1, 4, 2000), (16, 4, 500), (16, 64 * 2**10, 300), (4, 2**20, 300), (1, 16 * 2**20, 100),
    (1, 64 * 2**20, 40),
)  # fmt: skip
WARM_UP = 5


def measured() -> list[dict[str, Any]]:
    """A row a number and size of tensors: by how many seconds a step with transfers takes more."""
    rows = []
    cluster = load_cluster(CLUSTER)
    with tempfile.TemporaryDirectory() as folder, Runtime(cluster) as runtime:
        for count, size, steps in SHAPES:
            exchange = Exchange(cluster, count, size, Path(folder))
            here, there = (spent(runtime, exchange, consumer, steps) for consumer in (0, 1))
            added = {key: there[key] - here[key] for key in here}
            rows.append({"tensors": count, "bytes": size, "steps": steps} | added)
    return rows


def spent(runtime: Runtime, exchange: Exchange, consumer: int, steps: int) -> dict[str, float]:
    """Seconds a step: on the clock, and of the processor at the source and at the destination.

    Building a session takes processor time too: it is taken out by a second run of no steps to
    speak of.
    """
    exchange.run(runtime, 0, consumer, 1, Effort(0, 1))  # the workers must be there
    workers = [pid for name, pid in runtime.process_ids.items() if name.startswith("worker")]
    read = [np.array(list(map(processor_seconds, workers)))]
    for number in (1, 1 + steps):
        measurement = exchange.run(runtime, 0, consumer, 1, Effort(WARM_UP, number))
        read.append(np.array(list(map(processor_seconds, workers))))
    source, destination = (np.diff(read, 2, axis=0)[0] / steps).tolist()
    return {"clock": measurement.step_time, "source": source, "destination": destination}


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table: a row a number and size of tensors."""
    return table_of([
        {
            "tensors a step": str(row["tensors"]),
            "of": format_bytes(row["bytes"]),
            "step longer by, ms": f"{row['clock'] * 1e3:.2f}",
            "source works, ms": f"{row['source'] * 1e3:.2f}",
            "destination, ms": f"{row['destination'] * 1e3:.2f}",
        }
        for row in rows
    ])  # fmt: skip


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


def fit_cost(rows: Sequence[dict[str, Any]]) -> Cost:
    """Least squares over rows of `measured`, of errors relative to each."""
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
    """Seconds of a step if transfers held the devices at both ends, which the semantics leave out.

    Each transfer is two ops without an order between them, one at its source and one at its
    destination, as a tensor is sent in pieces: both begin when the tensor is there and the device
    has time, and the consumers wait for both. Channels carry nothing. Simulated like that by
    semantics version 1, it is a proposal to be judged by measurements, see `benchmarks.fidelity`.

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


if __name__ == "__main__":
    found = measured()
    save("transfers", {"machine": machine(), "rows": found}, markdown(found), indent=1)
