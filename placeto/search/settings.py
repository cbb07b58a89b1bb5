"""What the search is told: `auto` and `annealing` are two settings of it."""

import math
from dataclasses import dataclass

from placeto.support.errors import PlacetoError

NO_POLICY, USUAL_POLICY = "none", "usual"
SHIPPED, PIPELINED = "placeto", "placeto-pipelined"
COARSE_GROUPS = 128  # as many as the policy that ships has learned with
MOST_CHAINS = 256
USUAL_PLACEMENTS, MOST_HEAT = 100, 4.0  # a group, and how much hotter a longer search begins


def check_least(config: object, **least: int) -> None:
    """Raises `PlacetoError` where one of these fields, unless it is None, is less."""
    for name, number in least.items():
        value = getattr(config, name)
        if value is not None and value < number:
            raise PlacetoError(f"{name} is {value}, expected {number} or more")


@dataclass(frozen=True)
class SearchConfig:
    """Settings of `search`.

    Temperatures are shares of the best start's step time, for 100 groups or more; for fewer, they
    are multiplied by 100 / groups.

    Attributes:
        policy: a run directory or a bundled policy; `none` to search without; `usual` for the one
            that ships, `placeto`, and none for a step of several microbatches: there a search finds
            more in a second without one, and as much in five (`benchmarks/pipelined_policy.py`).
        samples: sweeps of the policy with drawn devices, at most, before the search.
        max_evaluations: the search ends once so many placements are simulated, starts included, if
            only in part; None for no limit but the incumbent's budget.
        chains: of the search, one a thread, at most 256; 0 for as many as numba may use threads, or
            2 where `max_evaluations` is set, so that the result does not depend on the machine.
        first_temperature: of a search that simulates 100 placements a group. The more it simulates
            the hotter it begins, by the square root, up to four times as hot: there is the time to
            leave the start for something better.
        last_temperature: of the search; geometric between.
        coarse_groups: of more groups than this, several are placed together at first; what found
            this is then refined group by group. None for never.
        coarse_ratio: how many groups are one, about, at first; where that leaves more than
            `coarse_groups`, these are placed in the same way.
        coarse_share: of what is left of the budget after the first answer, for that.
        refining_temperature: the first, of the search that refines; otherwise as
            `first_temperature`.
        exchanges: how often, evenly over the budget, every chain goes on from the best placement
            that any has found.
    """

    policy: str = USUAL_POLICY
    samples: int = 16
    max_evaluations: int | None = None
    chains: int = 0
    first_temperature: float = 0.02
    last_temperature: float = 0.0003
    coarse_groups: int | None = COARSE_GROUPS
    coarse_ratio: float = 2.6
    coarse_share: float = 0.5
    refining_temperature: float = 0.001
    exchanges: int = 5

    def __post_init__(self) -> None:
        check_least(self, samples=0, chains=0, exchanges=0)
        if self.chains > MOST_CHAINS:
            raise PlacetoError(f"chains is {self.chains}, expected at most {MOST_CHAINS}")
        check_least(self, max_evaluations=1, coarse_groups=1)
        if not self.coarse_ratio > 1:
            raise PlacetoError(f"coarse_ratio is {self.coarse_ratio}, expected more than 1")
        if not 0 < self.coarse_share < 1:
            raise PlacetoError(f"coarse_share is {self.coarse_share}, expected between 0 and 1")
        least = min(self.first_temperature, self.refining_temperature)
        if not 0 < self.last_temperature <= least:
            raise PlacetoError(
                f"temperatures fall from {self.first_temperature} and {self.refining_temperature} "
                f"to {self.last_temperature}, expected positive ones that do not rise"
            )

    def temperature(self, spent: float, placements: float) -> float:
        """The temperature once a share of the budget, from 0 to 1, is spent.

        `placements` is how many the whole search will have simulated, a group.
        """
        longer = min(math.sqrt(placements / USUAL_PLACEMENTS), MOST_HEAT)
        first = max(longer * self.first_temperature, self.last_temperature)
        return float(first * (self.last_temperature / first) ** min(spent, 1.0))
