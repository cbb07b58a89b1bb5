"""What transfers cost the devices at their ends: how much longer these compute meanwhile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placeto.cluster import EndCost
from placeto.measurement.calibration.busy import BusyExchange, Shape
from placeto.measurement.measured import Effort
from placeto.measurement.runtime import Runtime

# Bytes of a tensor -> how many a step sends.
COUNTS = {4: 16, 2**16: 16, 2**20: 16, 2**24: 4}
_EFFORT = Effort(warm_up=3, steps=15, patience_seconds=1.0)
_PASSES = 3
_NOISE_SECONDS = 20e-6  # no cost is known better
_STEP_NOISE_SECONDS = 0.3e-3
# Between two tensors there is to be this much to compute at least, so that who computes more is
# never kept waiting by the wire or by the other end.
_LEAST_SECONDS = 0.8e-3
_LEAST_SECONDS_PER_BYTE = 1.5e-9


@dataclass(frozen=True)
class Ends:
    """What a transfer costs the device that sends it, and the one that receives it."""

    send: tuple[EndCost, ...]
    receive: tuple[EndCost, ...]


def measure_ends(
    runtime: Runtime,
    source: int,
    destination: int,
    product_seconds: tuple[float, float],
    folder: Path,
) -> Ends | None:
    """Has both devices compute, one of them for longer, while tensors go from one to the other.

    What they have the step take longer is what one who sends, or receives, pays for them. (What
    processor time transfers take says less: on CPUs a worker that waits for another looks again and
    again whether it is done; from run to run a tensor of 4 bytes took 2 to 300 us of it.) The
    machine is faster at one time than at another: steps with tensors that are sent take turns with
    steps without, and tell how many products could be computed meanwhile; of several passes the
    middle one is taken.

    Args:
        runtime: whose workers run.
        source: device that sends.
        destination: device that receives.
        product_seconds: what a product of `Work` takes on either, at the speed that counts.
        folder: where GraphDefs are put.

    Returns:
        The costs; None if no size costs either end more than what is known of it.

    Raises:
        PlacetoError: a step cannot be run.
    """
    product = _product_seconds(runtime, source, destination, folder)
    shapes = []
    for size, count in COUNTS.items():
        between = _LEAST_SECONDS + _LEAST_SECONDS_PER_BYTE * size
        most = max(math.ceil(between / product), 2)
        shapes.append((Shape(count, size, most, 0), Shape(count, size, 3 * most // 4, most)))
    exchanges = [
        [BusyExchange(runtime.cluster, shape, folder) for shape in both] for both in shapes
    ]

    def cost(exchange: BusyExchange, end: int) -> float:
        here, there = exchange.run(runtime, source, destination, _EFFORT)
        products = float(np.median(there - here) / np.median(here)) * exchange.num_products[end]
        return products * product_seconds[end] / exchange.shape.num_tensors

    passes = [
        [[cost(exchange, end) for end, exchange in enumerate(both)] for both in exchanges]
        for _ in range(_PASSES)
    ]
    costs = np.median(passes, axis=0)
    longer = costs * np.array(list(COUNTS.values()))[:, None]  # (sizes, 2) of whole steps
    if (longer < _STEP_NOISE_SECONDS).all():
        return None
    send, receive = costs.T.tolist()
    return Ends(pieces(list(COUNTS), send), pieces(list(COUNTS), receive))


def _product_seconds(runtime: Runtime, source: int, destination: int, folder: Path) -> float:
    """Seconds of a product, on the device that is faster at it."""
    count = 16
    found = []
    for device, other in ((source, destination), (destination, source)):
        one, more = (
            np.median(
                BusyExchange(runtime.cluster, Shape(1, 4, products, 0), folder).run(
                    runtime, device, other, _EFFORT
                )[0]
            )
            for products in (1, 1 + count)  # before the tensor, and after it
        )
        found.append(max(float(more - one) / (2 * count), 1e-6))
    return min(found)


def pieces(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[EndCost, ...]:
    """Costs of small tensors and of large ones, each seconds and seconds a byte.

    By least squares of differences in units of how well each is known, none below 0; the size in
    the middle is in both.

    Args:
        sizes: (n,) bytes, ascending; at least three.
        seconds: (n,) what a tensor of each costs.
    """
    from scipy.optimize import nnls

    middle = len(sizes) // 2
    found = []
    for least, some in ((0, slice(middle + 1)), (sizes[middle], slice(middle, None))):
        size, cost = np.array(sizes[some], dtype=float), np.maximum(seconds[some], 0.0)
        weight = 1 / (cost + _NOISE_SECONDS)
        terms = np.stack([np.ones(len(size)), size], axis=1) * weight[:, None]
        fixed, per_byte = nnls(terms, cost * weight)[0].tolist()
        found.append(EndCost(least, round(fixed, 9), per_byte))
    return tuple(found)
