"""What measuring a placement yields."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Measurement:
    """The steps of a placement that ran, or why it did not.

    Attributes:
        samples: seconds of each step that counts, in the order in which they ran; empty if it
            failed.
        reason: why it failed, in one line; empty if it did not.
        trace: one further step as a serialized `tensorflow.RunMetadata`, if it was asked for.
    """

    samples: tuple[float, ...] = ()
    reason: str = ""
    trace: bytes | None = None

    @property
    def feasible(self) -> bool:
        """Whether the placement ran."""
        return not self.reason

    @cached_property
    def step_time(self) -> float:
        """Median seconds of a step; infinite if it failed."""
        return float(np.median(self.samples)) if self.feasible else math.inf

    @property
    def deviation(self) -> float:
        """Median distance of the samples from their median, in seconds."""
        if not self.feasible:
            return math.nan
        return float(np.median(np.abs(np.array(self.samples) - self.step_time)))

    @property
    def interval(self) -> tuple[float, float]:
        """95% confidence interval of the median, in seconds; see `median_interval`."""
        return median_interval(self.samples) if self.feasible else (math.inf, math.inf)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95% confidence interval of the median, whatever the distribution.

    The interval lies between two order statistics: as many samples are below the median as a
    fair coin shows heads. Fewer than six samples cannot give 95%; their whole range is returned.

    Args:
        samples: at least one.
    """
    ordered, count = sorted(samples), len(samples)
    tail, rank = 0.0, 0
    # The interval from the rank-th smallest to the rank-th largest misses the median with twice
    # the probability of fewer than `rank` heads.
    while (tail := tail + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[count - rank]
