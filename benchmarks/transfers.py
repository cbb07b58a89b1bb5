"""What a transfer costs the devices at its ends: `python -m benchmarks.transfers`.

The simulation lets a transfer run beside a device's ops at no cost to them. Where gRPC carries
tensors between CPU workers, both ends work for it: this is the processor time of the two workers
of `local-2` in steps that do nothing but send, less that in the same steps without transfers.
Processor time, unlike the clock's, hardly depends on what else the machine does. Writes
`results/transfers.json` and `results/transfers.md`.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import save, table_of
from benchmarks.processes import processor_seconds
from placeto import load_cluster
from placeto.measurement import Effort, Runtime
from placeto.measurement.calibration.exchange import Exchange
from placeto.measurement.calibration.machine import machine
from placeto.support.units import format_bytes

CLUSTER = "local-2"
# Tensors a step, bytes of each, and steps: the kernel counts processor time in hundredths.
SHAPES = (
    (1, 4, 2000),
    (16, 4, 500),
    (16, 64 * 2**10, 300),
    (4, 2**20, 300),
    (1, 16 * 2**20, 100),
    (1, 64 * 2**20, 40),
)
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


if __name__ == "__main__":
    found = measured()
    save("transfers", {"machine": machine(), "rows": found}, markdown(found), indent=1)
