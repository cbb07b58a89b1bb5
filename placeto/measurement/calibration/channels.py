"""Bandwidth, latency and overhead of channels, from transfers of many sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placeto.support.errors import PlacetoError

if TYPE_CHECKING:
    from placeto.cluster import Channel, Cluster
    from placeto.measurement.calibration.exchange import Exchange
    from placeto.measurement.effort import Effort
    from placeto.measurement.runtime import Runtime

# Tensors a step, and bytes of each. Several at once tell what holds the channel (overhead) from
# what does not (latency).
EXCHANGES = (
    (1, 4),
    (4, 4),
    (16, 4),
    (1, 64 * 2**10),
    (16, 64 * 2**10),
    (1, 2**20),
    (4, 2**20),
    (1, 4 * 2**20),
    (4, 4 * 2**20),
    (1, 16 * 2**20),
    (1, 64 * 2**20),
)
# Medians of tens of steps are not known better than this.
_RELATIVE_NOISE = 0.05
_MIN_NOISE_SECONDS = 10e-6
# Where no transfer of any size takes longer than another.
_MAX_BANDWIDTH = 1e13


@dataclass(frozen=True)
class Sample:
    """What transfers added to a step.

    Attributes:
        num_tensors: sent at the same instant.
        num_bytes: of each.
        seconds: how much longer the step took than one without transfers.
        noise_seconds: how well that is known.
    """

    num_tensors: int
    num_bytes: int
    seconds: float
    noise_seconds: float = 0.0


@dataclass(frozen=True)
class ChannelFit:
    """Figures of a channel; see `placeto.cluster.Channel`.

    Attributes:
        bandwidth: bytes a second.
        latency_seconds: of a transfer.
        overhead_seconds: of a transfer.
        error: median relative difference between samples and fit.
    """

    bandwidth: float
    latency_seconds: float
    overhead_seconds: float
    error: float


def sample_pair(
    runtime: Runtime,
    exchanges: Iterable[Exchange],
    shapes: Sequence[tuple[int, int]],
    source: int,
    destination: int,
    effort: Effort,
) -> list[Sample]:
    """Measures transfers from one device to another.

    Each exchange is measured with its consumers there and with its consumers here, in turn: the
    difference is what the transfers took.

    Args:
        runtime: of the cluster.
        exchanges: the steps.
        shapes: tensors and bytes of each of them.
        source: device number.
        destination: device number.
        effort: of each step.

    Raises:
        PlacetoError: a step cannot be run.
    """
    samples = []
    for exchange, (num_tensors, num_bytes) in zip(exchanges, shapes, strict=True):
        here = exchange.run(runtime, source, source, destination, effort)
        there = exchange.run(runtime, source, destination, destination, effort)
        noise = (here.deviation + there.deviation) / len(there.samples) ** 0.5
        samples.append(Sample(num_tensors, num_bytes, there.step_time - here.step_time, 2 * noise))
    return samples


def fit_channel(samples: Sequence[Sample]) -> ChannelFit:
    """The figures by which a simulated channel would have taken as long, none below 0.

    A channel carries k tensors of n bytes in latency + k n / bandwidth + (k - 1) overhead, by the
    semantics of the simulation. The fit is by least squares with a soft L1 loss, which lets no
    single sample pull far (Huber 1964), of residuals in units of each sample's noise.

    Args:
        samples: at least three, of different sizes and counts.
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
    found = least_squares(
        lambda x: weighted @ x - target,
        start,
        bounds=(0, np.inf),
        loss="soft_l1",
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    ).x
    by_byte, latency, overhead = (found / scale).tolist()
    predicted = terms @ (found / scale)
    error = np.median(np.abs(predicted - seconds) / np.maximum(np.abs(seconds), _MIN_NOISE_SECONDS))
    # The solver stays off its bounds by a hair: nothing less than a nanosecond was measured.
    return ChannelFit(
        1 / max(by_byte, 1 / _MAX_BANDWIDTH), round(latency, 9), round(overhead, 9), float(error)
    )


def fit_channels(
    cluster: Cluster,
    sample: Callable[[int, int], Sequence[Sample]],
) -> tuple[tuple[Channel, ...], tuple[ChannelFit, ...]]:
    """The cluster's channels with figures that were measured.

    Args:
        cluster: whose channels.
        sample: measures transfers from one device to another, by their numbers; a channel that
            serves several pairs is fitted to the samples of all of them.

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
    fits = [
        fit_channel([each for pair in np.argwhere(between == number) for each in sample(*pair)])
        for number in range(len(cluster.channels))
    ]
    channels = [
        replace(
            channel,
            bandwidth=fit.bandwidth,
            latency_seconds=fit.latency_seconds,
            overhead_seconds=fit.overhead_seconds,
        )
        for channel, fit in zip(cluster.channels, fits, strict=True)
    ]
    return tuple(channels), tuple(fits)
