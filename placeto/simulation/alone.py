"""What transfers take where nothing is in their way."""

import numpy as np

from placeto.problem import ClusterArrays
from placeto.support.arrays import Floats, Ints


def ends_seconds(arrays: ClusterArrays, channel: Ints, size: Ints) -> tuple[Floats, Floats]:
    """(n,) seconds that transfers of so many bytes cost the devices that send and that receive."""
    found = []
    for rows in (2 * channel, 2 * channel + 1):
        first, end, seconds = (
            arrays.cost_start[rows],
            arrays.cost_start[rows + 1],
            np.zeros(len(rows)),
        )
        for piece in range(int((end - first).max(initial=0))):
            some = np.flatnonzero(first + piece < end)
            least, base, each = arrays.costs[first[some] + piece].T
            seconds[some] = np.where(size[some] >= least, base + each * size[some], seconds[some])
        found.append(seconds)
    return found[0], found[1]


def seconds_alone(arrays: ClusterArrays, channel: Ints, size: Ints) -> Floats:
    """(n,) seconds from request to arrival of transfers of so many bytes.

    What is sent flows through: the slowest part counts, and all latencies.
    """
    carried = size / arrays.bandwidth[channel]
    for end in ends_seconds(arrays, channel, size):
        carried = np.maximum(carried, end)
    seconds: Floats = carried + arrays.latency[channel]
    return seconds
