"""How many steps a placement is given, and how long."""

import math
from dataclasses import dataclass

from placeto.support.errors import PlacetoError


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

    Raises:
        PlacetoError: no step that counts, or a negative number.
    """

    warm_up: int = 5
    steps: int = 5
    max_steps: int = 50
    precision: float = math.inf
    deadline_seconds: float = 300.0

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
