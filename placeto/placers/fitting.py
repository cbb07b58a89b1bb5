"""The largest batch that fits."""

from collections.abc import Callable
from dataclasses import dataclass

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.placers.strategies import Outlook, Strategy, outlook
from placeto.support.errors import PlacetoError

MOST_TRIES = 24
LARGEST_BATCH = 2**20


@dataclass(frozen=True)
class BatchTry:
    """A batch, and what a step of it would do.

    Attributes:
        batch: examples a step.
        found: the step by the strategy.
        fullness: of the fullest device, its peak memory over what it has.
    """

    batch: int
    found: Outlook
    fullness: float


def largest_batch(
    make: Callable[[int], ComputationGraph],
    cluster: Cluster,
    strategy: Strategy,
    batch: int,
    multiple: int = 1,
) -> tuple[BatchTry, ...]:
    """Tries batches until the largest one that fits is known, or is known well enough.

    Memory grows about in proportion to the batch, so that two batches tell where a third has to be:
    it takes few tries.

    Args:
        make: the graph of a step of so many examples.
        cluster: the devices.
        strategy: how the step is run.
        batch: the first one to try.
        multiple: what batches are multiples of, such as the number of microbatches.

    Returns:
        The tries, in order; the largest that fits among them is the answer, if any does.

    Raises:
        PlacetoError: a batch that is no positive multiple; see `outlook`.
    """
    if batch < 1 or batch % multiple:
        raise PlacetoError(f"batch is {batch}, expected a multiple of {multiple} above 0")
    limit = {device.name: device.memory_bytes for device in cluster.devices}
    tries: list[BatchTry] = []
    low, high = 0, LARGEST_BATCH // multiple + 1  # in multiples: fits, and does not
    number = batch // multiple
    while len(tries) < MOST_TRIES and low < number < high:
        found = outlook(make(number * multiple), cluster, strategy)
        full = max(
            peak / max(limit[name], 1)
            for name, peak in zip(found.devices, found.peak_memory, strict=True)
        )
        tries.append(BatchTry(number * multiple, found, full))
        low, high = (number, high) if found.feasible else (low, number)
        number = min(max(_next(tries, multiple, low, high), low + 1), high - 1)
    return tuple(tries)


def _next(tries: list[BatchTry], multiple: int, low: int, high: int) -> int:
    """The next multiple to try: twice as many, half as many, or in between.

    In between every other one is where the fullest device is full, by the two tries that are
    nearest to it, and every other one in the middle, as memory is no straight line.
    """
    if all(each.found.feasible for each in tries):
        return 2 * low
    if len(tries) % 2 or len(tries) < 2:
        return (low + high) // 2
    one, other = sorted(tries, key=lambda each: abs(each.fullness - 1))[:2]
    slope = (other.fullness - one.fullness) / (other.batch - one.batch)
    full = one.batch + (1 - one.fullness) / slope if slope > 0 else 0.0
    return int(full / multiple)
