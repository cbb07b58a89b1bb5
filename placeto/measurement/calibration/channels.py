"""Bandwidth, latency and overhead of channels, from transfers of many sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from placeto.cluster import Channel, Cluster
from placeto.measurement.calibration.exchange import Sample
from placeto.support.errors import PlacetoError

# Bytes of a tensor -> how many a step sends. Several at once tell what holds the channel (overhead)
# from what does not (latency).
_COUNTS = {4: (1, 4, 16), 2**16: (1, 16), 2**20: (1, 4), 2**22: (1, 4), 2**24: (1,), 2**26: (1,)}
EXCHANGES = tuple((count, size) for size, counts in _COUNTS.items() for count in counts)
# Medians of tens of steps are not known better than this.
_RELATIVE_NOISE = 0.05
_MIN_NOISE_SECONDS = 10e-6
# Where no transfer of any size takes longer than another.
_MAX_BANDWIDTH = 1e13


def fit_channel(channel: Channel, samples: Sequence[Sample]) -> tuple[Channel, float]:
    """The channel with the figures by which it would have taken as long, none below 0.

    A channel carries k tensors of n bytes in latency + k n / bandwidth + (k - 1) overhead, by the
    semantics of the simulation. The fit is by least squares with a soft L1 loss, which lets no
    single sample pull far (Huber 1964), of residuals in units of each sample's noise.

    Args:
        channel: which one.
        samples: at least three, of different sizes and counts.

    Returns:
        The channel, and the median relative difference between samples and fit.
    """
    from scipy.optimize import least_squares, nnls

    count = np.array([sample.num_tensors for sample in samples], dtype=np.float64)
    size = np.array([sample.num_bytes for sample in samples], dtype=np.float64)
    seconds = np.array([sample.seconds for sample in samples])
    noise = np.array([sample.noise_seconds for sample in samples])
    weight = 1 / (noise + _RELATIVE_NOISE * np.abs(seconds) + _MIN_NOISE_SECONDS)
    terms = np.stack([count * size, np.ones(len(samples)), count - 1], axis=1)
    weighted = terms * weight[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    weighted /= scale
    target = seconds * weight
    start, _ = nnls(weighted, target)
    tolerances = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12)
    found = least_squares(
        lambda x: weighted @ x - target, start, bounds=(0, np.inf), loss="soft_l1", **tolerances
    ).x
    by_byte, latency, overhead = (found / scale).tolist()
    predicted = terms @ (found / scale)
    error = np.median(np.abs(predicted - seconds) / np.maximum(np.abs(seconds), _MIN_NOISE_SECONDS))
    # The solver stays off its bounds by a hair: nothing less than a nanosecond was measured.
    fitted = replace(
        channel,
        bandwidth=1 / max(by_byte, 1 / _MAX_BANDWIDTH),
        latency_seconds=round(latency, 9),
        overhead_seconds=round(overhead, 9),
    )
    return fitted, float(error)


def fit_channels(
    cluster: Cluster, sample: Callable[[int, int], Sequence[Sample]]
) -> tuple[tuple[Channel, ...], tuple[float, ...]]:
    """The cluster's channels with figures that were measured, and the error of each fit.

    `sample` measures transfers from one device to another, by their numbers; a channel that serves
    several pairs is fitted to the samples of all of them.

    Raises:
        PlacetoError: a channel that serves no pair.
    """
    between = cluster.channel_between
    for number, channel in enumerate(cluster.channels):
        if not (between == number).any():
            raise PlacetoError(
                f"cluster {cluster.name!r}: channel {channel.name!r} leads from no device to "
                "another, so it cannot be measured; remove it"
            )
    fits = []
    for number, channel in enumerate(cluster.channels):
        samples = [each for pair in np.argwhere(between == number) for each in sample(*pair)]
        fits.append(fit_channel(channel, samples))
    return tuple(channel for channel, _ in fits), tuple(error for _, error in fits)
