"""How many steps a placement is given, and what measuring them yields."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeto.support.errors import PlacetoError

_LEAST_FOR_95_PERCENT = 6


@dataclass(frozen=True)
class Effort:
    """Steps that count and steps that do not.

    The defaults are those of the papers: ten steps, of which the last five count (Addanki et al.
    2019, arXiv:1906.08879; there the mean of five, here their median).

    Attributes:
        warm_up: steps before those that count.
        steps: steps that count, at least.
        max_steps: steps that count, at most; none below `steps` is ever used.
        precision: measure on until the 95% confidence interval of the median is no wider than
            this fraction of the median to either side; infinite for `steps` steps.
        deadline_seconds: wall-clock for one placement, from the session to the last step.
        patience_seconds: of running on for the sake of steps during which no core was slower than
            ever; see `placeto.measurement.pace`.

    Raises:
        PlacetoError: no step that counts, or a negative number.
    """

    warm_up: int = 5
    steps: int = 5
    max_steps: int = 50
    precision: float = math.inf
    deadline_seconds: float = 300.0
    patience_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.warm_up < 0:
            raise PlacetoError(f"warm_up is {self.warm_up}, expected a number from 0")
        if self.steps < 1:
            raise PlacetoError(f"steps is {self.steps}, expected a number from 1")
        if not self.precision > 0:
            raise PlacetoError(f"precision is {self.precision}, expected a number above 0")
        if not 0 < self.deadline_seconds < math.inf:
            raise PlacetoError(
                f"deadline_seconds is {self.deadline_seconds}, expected a finite number above 0"
            )
        if not self.patience_seconds >= 0:
            raise PlacetoError(
                f"patience_seconds is {self.patience_seconds}, expected a number from 0"
            )

    def is_met(self, samples: Sequence[float]) -> bool:
        """Whether these seconds of steps are enough."""
        if len(samples) < self.steps:
            return False
        if self.precision == math.inf or len(samples) >= self.max_steps:
            return True
        if len(samples) < _LEAST_FOR_95_PERCENT:
            return False
        measured = Measurement(tuple(samples))
        low, high = measured.interval
        widest = max(high - measured.step_time, measured.step_time - low)
        return widest <= self.precision * measured.step_time


@dataclass(frozen=True, eq=False)
class Measurement:
    """The steps of a placement that ran, or why it did not.

    Attributes:
        samples: seconds of each step that counts, in the order in which they ran; empty if it
            failed.
        reason: why it failed, in one line; empty if it did not.
        traces: further steps, each a serialized `tensorflow.RunMetadata`, as many as asked for.
        died: whether it failed as a process died or no longer answered; that may not have been the
            placement's doing.
        paces: of each sample, how many times as long as ever some work took on the slowest core,
            before or after it, or on another core, see `Runtime.compare`; empty if it failed.
    """

    samples: tuple[float, ...] = ()
    reason: str = ""
    traces: tuple[bytes, ...] = ()
    died: bool = False
    paces: tuple[float, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether the placement ran."""
        return not self.reason

    @cached_property
    def step_time(self) -> float:
        """Median seconds of a step; infinite if it failed."""
        return float(np.median(self.samples)) if self.feasible else math.inf

    @property
    def pace(self) -> float:
        """Median pace at the steps that count: up to `CALM` the cores were as fast as ever."""
        return float(np.median(self.paces)) if self.paces else 1.0

    @property
    def deviation(self) -> float:
        """Median distance of the samples from their median, in seconds; NaN if it failed."""
        if not self.feasible:
            return math.nan
        return float(np.median(np.abs(np.array(self.samples) - self.step_time)))

    @property
    def interval(self) -> tuple[float, float]:
        """95% confidence interval of the median, in seconds; see `median_interval`."""
        return median_interval(self.samples) if self.feasible else (math.inf, math.inf)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95% confidence interval of the median, whatever the distribution.

    The interval lies between two order statistics. Fewer than six samples, of at least one, cannot
    give 95%; their whole range is returned.
    """
    from scipy.stats import quantile_test

    if len(samples) < _LEAST_FOR_95_PERCENT:
        return min(samples), max(samples)
    low, high = quantile_test(samples, p=0.5).confidence_interval(confidence_level=0.95)
    return float(low), float(high)
