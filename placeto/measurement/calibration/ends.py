"""What transfers cost the devices at their ends: processor time, by size."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from placeto.cluster import Cluster, EndCost
from placeto.measurement.calibration.exchange import Exchange
from placeto.measurement.measured import Effort
from placeto.measurement.runtime import Runtime
from placeto.support.arrays import Floats

# Tensors a step, bytes of each, and steps. Of small ones several at once, as a single one costs
# what waking the threads does, which in a step of many ops are awake.
SHAPES = (
    (16, 4, 100), (16, 2**16, 100), (4, 2**20, 60), (2, 2**22, 40), (1, 2**24, 30), (1, 2**26, 15),
)  # fmt: skip
_WARM_UP = 3
_NANO = 1e-9


@dataclass(frozen=True)
class Ends:
    """What a transfer costs the device that sends it, and the one that receives it."""

    send: tuple[EndCost, ...]
    receive: tuple[EndCost, ...]


def processor_seconds(process: int) -> float:
    """What the threads of a process here have had of the processors so far.

    From Linux' `schedstat` of each, in nanoseconds; other clocks count in hundredths of a second.
    """
    files = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) * _NANO


def processes(cluster: Cluster, runtime: Runtime) -> list[int] | None:
    """(num_devices,) the process of each device; None if not each is alone in one, here."""
    tasks = [f"{name.job} {name.task}" for name in cluster.tensorflow_devices()]
    found = [runtime.process_ids.get(task, -1) for task in tasks]
    return found if -1 not in found and len(set(found)) == len(found) else None


def measure_ends(
    runtime: Runtime, exchanges: Sequence[tuple[Exchange, int]], source: int, destination: int
) -> Ends | None:
    """Sends tensors of several sizes, and looks at what processor time either worker has had.

    Of the steps without transfers it is taken off.

    Args:
        runtime: whose workers run.
        exchanges: with the number of their steps, by ascending size of tensors.
        source: device that sends.
        destination: device that receives.

    Returns:
        The costs; None if a device is not alone in a process of this machine, as GPUs are not.

    Raises:
        PlacetoError: a step cannot be run.
    """
    sizes, costs = [], []
    for exchange, steps in exchanges:
        spent = []
        for consumer in (source, destination):
            read = []
            for count in (1, 1 + steps):  # the first takes out what building a session takes
                if (ids := processes(runtime.cluster, runtime)) is None:
                    exchange.run(runtime, source, consumer, destination, Effort(0, 1))
                    if (ids := processes(runtime.cluster, runtime)) is None:
                        return None
                ends = [ids[source], ids[destination]]
                before = np.array([processor_seconds(end) for end in ends])
                exchange.run(runtime, source, consumer, destination, Effort(_WARM_UP, count))
                read.append(np.array([processor_seconds(end) for end in ends]) - before)
            spent.append((read[1] - read[0]) / steps)
        sizes.append(exchange.num_bytes)
        costs.append((spent[1] - spent[0]) / exchange.num_tensors)
    send, receive = np.array(costs).T
    return Ends(pieces(sizes, send), pieces(sizes, receive))


def pieces(sizes: Sequence[int], seconds: Floats) -> tuple[EndCost, ...]:
    """Costs by size that run through what was measured, in straight lines.

    A larger tensor is taken to cost no less than a smaller one, and none less than nothing.

    Args:
        sizes: (n,) bytes, ascending; at least two.
        seconds: (n,) what a tensor of each costs.
    """
    known = np.maximum.accumulate(np.maximum(seconds, 0.0))
    found = []
    for (size, larger), (cost, more) in zip(pairwise(sizes), pairwise(known), strict=True):
        per_byte = float(more - cost) / (larger - size)
        start = 0 if not found else size
        found.append(EndCost(start, round(float(cost) - per_byte * size, 12), per_byte))
    return tuple(found)
