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
        traces: further steps, each a serialized `tensorflow.RunMetadata`, as many as asked for.
    """

    samples: tuple[float, ...] = ()
    reason: str = ""
    traces: tuple[bytes, ...] = ()

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

    The interval lies between two order statistics. Fewer than six samples cannot give 95%; their
    whole range is returned.

    Args:
        samples: at least one.
    """
    from scipy.stats import quantile_test

    if len(samples) < 6:
        return min(samples), max(samples)
    low, high = quantile_test(samples, p=0.5).confidence_interval(confidence_level=0.95)
    return float(low), float(high)
