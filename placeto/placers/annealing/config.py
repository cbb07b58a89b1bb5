"""What an annealing run is told."""

from dataclasses import dataclass

from placeto.errors import PlacetoError


@dataclass(frozen=True)
class AnnealingConfig:
    """Settings of `anneal`.

    Temperatures are shares of the best start's step time, for 100 groups or more; for fewer, they
    are multiplied by 100 / groups.

    Attributes:
        max_evaluations: the search ends once so many placements are simulated, starts included;
            None for no limit but the incumbent's budget.
        candidates: neighbours of the present placement that are simulated at once.
        restarts: annealings from the best start, before the last, from the best placement found.
        restart_share: of the budget, for each of these.
        first_temperature: of each annealing from the best start.
        refining_temperature: the first of the last annealing.
        last_temperature: of every annealing; geometric between.
    """

    max_evaluations: int | None = None
    candidates: int = 8
    restarts: int = 3
    restart_share: float = 0.2
    first_temperature: float = 0.02
    refining_temperature: float = 0.005
    last_temperature: float = 0.0005

    def __post_init__(self) -> None:
        if self.max_evaluations is not None and self.max_evaluations < 1:
            raise PlacetoError(f"max_evaluations is {self.max_evaluations}, expected 1 or more")
        if self.candidates < 1:
            raise PlacetoError(f"candidates is {self.candidates}, expected 1 or more")
        if self.restarts < 0 or not 0 < self.restart_share * max(self.restarts, 1) < 1:
            raise PlacetoError(
                f"{self.restarts} restarts of {self.restart_share} of the budget each, "
                "expected 0 or more that leave some of it"
            )
        if not 0 < self.last_temperature <= min(self.first_temperature, self.refining_temperature):
            raise PlacetoError(
                f"temperatures fall from {self.first_temperature} and {self.refining_temperature} "
                f"to {self.last_temperature}, expected positive ones that do not rise"
            )

    def stage(self, spent: float) -> tuple[int, float]:
        """Which annealing it is, from 0, and its temperature.

        Args:
            spent: share of the budget, below 1.
        """
        number = min(int(spent / self.restart_share), self.restarts)
        begun = number * self.restart_share
        if number < self.restarts:
            first, done = self.first_temperature, (spent - begun) / self.restart_share
        else:
            first, done = self.refining_temperature, (spent - begun) / (1 - begun)
        return number, float(first * (self.last_temperature / first) ** done)
