"""What transfers cost the devices at their ends: processor time, by size."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placeto.cluster import EndCost
from placeto.measurement.calibration.exchange import Exchange
from placeto.measurement.measured import Effort
from placeto.measurement.runtime import Runtime
from placeto.support.arrays import Floats

# Bytes of a tensor -> steps. One tensor a step, as in the steps of models few are sent at the same
# instant: of sixteen together each costs a third of what one costs alone.
STEPS = {4: 100, 2**16: 100, 2**20: 60, 2**22: 40, 2**24: 25, 2**26: 12}
_WARM_UP = 3
_TRIES = 3
_LEAST_SECONDS = 1e-6  # where less was measured, it is noise
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


def processes(runtime: Runtime) -> dict[int, int]:
    """Device -> its process, of CPUs that are alone in one on this machine."""
    names = runtime.cluster.tensorflow_devices()
    tasks = Counter((name.job, name.task) for name in names)
    return {
        number: runtime.process_ids[task]
        for number, name in enumerate(names)
        if name.type == "CPU" and tasks[name.job, name.task] == 1
        if (task := f"{name.job} {name.task}") in runtime.process_ids
    }


def measure_ends(
    runtime: Runtime, exchanges: Mapping[int, Exchange], source: int, destination: int
) -> Ends | None:
    """Sends tensors of several sizes, and looks at what processor time either worker has had.

    That of the same steps without transfers is taken off.

    Args:
        runtime: whose workers run.
        exchanges: steps that send one tensor, by its bytes, ascending.
        source: device that sends.
        destination: device that receives.

    Returns:
        The costs; None if either device is not alone in a process of this machine, or is a GPU,
        which does the work itself.

    Raises:
        PlacetoError: a step cannot be run.
    """
    costs = []
    for size, exchange in exchanges.items():
        here, there = (
            _spent(runtime, exchange, (source, consumer, destination), STEPS[size])
            for consumer in (source, destination)
        )
        if here is None or there is None:
            return None
        costs.append(there - here)
    send, receive = np.array(costs).T
    sizes = list(exchanges)
    return Ends(pieces(sizes, send.tolist()), pieces(sizes, receive.tolist()))


def _spent(
    runtime: Runtime, exchange: Exchange, devices: tuple[int, int, int], steps: int
) -> Floats | None:
    """(2,) processor seconds a step of the processes of the source and of the other device."""
    exchange.run(runtime, *devices, Effort(0, 1))  # the workers must be there
    found = processes(runtime)
    ends = [found.get(device) for device in (devices[0], devices[2])]
    if None in ends:
        return None
    spent = []
    for count in (1, 1 + steps):  # the first is what building a session takes
        tries = []
        for _ in range(_TRIES):
            before = np.array([processor_seconds(end) for end in ends if end is not None])
            exchange.run(runtime, *devices, Effort(_WARM_UP, count))
            after = np.array([processor_seconds(end) for end in ends if end is not None])
            tries.append(after - before)
        spent.append(np.median(tries, axis=0))
    return np.asarray((spent[1] - spent[0]) / steps)


def pieces(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[EndCost, ...]:
    """Costs of small tensors and of large ones, each seconds and seconds a byte.

    By least squares of relative differences, none below 0; the size in the middle is in both.

    Args:
        sizes: (n,) bytes, ascending; at least three.
        seconds: (n,) what a tensor of each costs.
    """
    from scipy.optimize import nnls

    middle = len(sizes) // 2
    found = []
    for least, some in ((0, slice(middle + 1)), (sizes[middle], slice(middle, None))):
        size, cost = np.array(sizes[some], dtype=float), np.maximum(seconds[some], _LEAST_SECONDS)
        terms = np.stack([np.ones(len(size)), size], axis=1) / cost[:, None]
        fixed, per_byte = nnls(terms, np.ones(len(size)))[0].tolist()
        found.append(EndCost(least, round(fixed, 9), per_byte))
    return tuple(found)
