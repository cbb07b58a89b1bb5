"""Bandwidth, latency and overhead of channels, from transfers of many sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from placeto.cluster import Channel, Cluster, end_seconds
from placeto.measurement.calibration.ends import Ends
from placeto.measurement.calibration.exchange import Sample
from placeto.support.arrays import Floats
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


def fit_channel(
    channel: Channel, samples: Sequence[Sample], ends: Ends | None = None
) -> tuple[Channel, float]:
    """The channel with the figures by which it would have taken as long, none below 0.

    A channel carries k tensors of n bytes in latency + k n / bandwidth + (k - 1) overhead, by the
    semantics of the simulation. Where it is known what its ends have to do, it carries one tensor
    in the longest of what it takes to send, n / bandwidth + latency, and latency and what it takes
    to receive; what several take longer is then the ends' work.

    The fit is by least squares with a soft L1 loss, which lets no single sample pull far (Huber
    1964), of residuals in units of each sample's noise.

    Args:
        channel: which one.
        samples: at least three, of different sizes and counts; of one tensor, where ends are known.
        ends: what the devices at its ends have to do.

    Returns:
        The channel, and the median relative difference between samples and fit.
    """
    from scipy.optimize import least_squares, nnls

    if ends is not None:
        channel = replace(channel, send=ends.send, receive=ends.receive, overhead_seconds=0.0)
        samples = [sample for sample in samples if sample.num_tensors == 1]
    count = np.array([sample.num_tensors for sample in samples], dtype=np.float64)
    size = np.array([sample.num_bytes for sample in samples], dtype=np.float64)
    seconds = np.array([sample.seconds for sample in samples])
    noise = np.array([sample.noise_seconds for sample in samples])
    weight = 1 / (noise + _RELATIVE_NOISE * np.abs(seconds) + _MIN_NOISE_SECONDS)
    terms = np.stack([count * size, np.ones(len(samples)), count - 1], axis=1)
    weighted = terms * weight[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    start, _ = nnls(weighted / scale, seconds * weight)

    def predicted(scaled: Floats) -> Floats:
        found = scaled / scale
        carried: Floats = terms @ found
        if ends is None:
            return carried
        sent = np.array([end_seconds(ends.send, each) for each in size])
        received = np.array([end_seconds(ends.receive, each) for each in size])
        longest: Floats = np.maximum(np.maximum(sent, carried), found[1] + received)
        return longest

    tolerances = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12)
    scaled = least_squares(
        lambda scaled: (predicted(scaled) - seconds) * weight,
        start, bounds=(0, np.inf), loss="soft_l1", **tolerances,
    ).x  # fmt: skip
    by_byte, latency, overhead = (scaled / scale).tolist()
    off = np.abs(predicted(scaled) - seconds)
    error = np.median(off / np.maximum(np.abs(seconds), _MIN_NOISE_SECONDS))
    # The solver stays off its bounds by a hair: nothing less than a nanosecond was measured.
    fitted = replace(
        channel,
        bandwidth=1 / max(by_byte, 1 / _MAX_BANDWIDTH),
        latency_seconds=round(latency, 9),
        overhead_seconds=0.0 if ends is not None else round(overhead, 9),
    )
    return fitted, float(error)


def fit_channels(
    cluster: Cluster,
    sample: Callable[[int, int], Sequence[Sample]],
    ends_of: Callable[[int, int], Ends | None] = lambda source, destination: None,
) -> tuple[tuple[Channel, ...], tuple[float, ...]]:
    """The cluster's channels with figures that were measured, and the error of each fit.

    `sample` measures transfers from one device to another, by their numbers, and `ends_of` what
    these cost the two; a channel that serves several pairs is fitted to the samples of all of them,
    with the ends of the first.

    Raises:
        PlacetoError: a channel that serves no pair, or that has a path.
    """
    between = cluster.channel_between
    for number, channel in enumerate(cluster.channels):
        if channel.path:
            raise PlacetoError(
                f"cluster {cluster.name!r}: channel {channel.name!r} has a path, whose links are "
                "not measured; give it figures of its own in the path's place"
            )
        if not (between == number).any():
            raise PlacetoError(
                f"cluster {cluster.name!r}: channel {channel.name!r} leads from no device to "
                "another, so it cannot be measured; remove it"
            )
    fits = []
    for number, channel in enumerate(cluster.channels):
        pairs = np.argwhere(between == number)
        samples = [each for pair in pairs for each in sample(*pair)]
        fits.append(
            fit_channel(channel, samples, None if channel.multicast else ends_of(*pairs[0]))
        )
    return tuple(channel for channel, _ in fits), tuple(error for _, error in fits)
