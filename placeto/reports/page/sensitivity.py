"""Whether a choice of placement stands if costs are other than believed."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeto.placement import Placement
from placeto.problem import PlacementProblem
from placeto.reports.page.others import is_quick, place_quickly
from placeto.reports.page.scaled import scaled_problem
from placeto.search.incumbent import Clock
from placeto.simulation import simulate_many
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent


@dataclass(frozen=True)
class Case:
    """Costs that may be the real ones, as factors of the believed ones; see `scaled_problem`."""

    name: str
    bandwidth: float = 1.0
    op_seconds: float = 1.0


CASES = (
    Case("as believed"),
    Case("bandwidth −25%", bandwidth=0.75),
    Case("bandwidth +25%", bandwidth=1.25),
    Case("op times −25%", op_seconds=0.75),
    Case("op times +25%", op_seconds=1.25),
)


@dataclass(frozen=True)
class Outcome:
    """How a placement does in a case, beside the best of other placers.

    Attributes:
        case: the costs.
        step_time: seconds of the placement, which is not changed; infinite if it does not fit.
        other: the placer whose placement is the fastest of the others'; None if none fits.
        other_step_time: seconds of that, infinite if none fits.
        again: the placers that placed under these costs.
    """

    case: Case
    step_time: float
    other: str | None
    other_step_time: float
    again: tuple[str, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether no other placer's placement is faster."""
        return self.step_time <= self.other_step_time

    @property
    def margin(self) -> float:
        """By which share of the faster one's step time the slower one is slower; 0 for none."""
        low, high = sorted((self.step_time, self.other_step_time))
        return high / low - 1 if 0 < low < np.inf else 0.0


def sensitivity(
    placement: Placement,
    others: Sequence[Placement],
    seed: int = 0,
    budget_seconds: float = 5.0,
    progress: Progress = silent,
    clock: Clock = time.monotonic,
) -> tuple[Outcome, ...]:
    """Simulates a placement under other costs, and lets other placers place under these.

    The others' placements count as they are; the quickest placers also run again, in each case for
    an equal part of the budget.

    Args:
        placement: the choice.
        others: what other placers found with the believed costs.
        seed: where the random numbers of those that are run again start.
        budget_seconds: for all that is run again.
        progress: told which case is looked at.
        clock: tells seconds.
    """
    again = run_again(others, budget_seconds / (len(CASES) - 1))
    end = clock()
    outcomes = []
    for case in CASES:
        progress(f"sensitivity: {case.name}")
        problem = scaled_problem(
            placement.problem, bandwidth=case.bandwidth, op_seconds=case.op_seconds
        )
        contenders, ran = [(other.method, other.devices) for other in others], []
        if case != CASES[0]:
            end += budget_seconds / (len(CASES) - 1)
            for method in again:
                if clock() < end:
                    with contextlib.suppress(PlacetoError):  # it finds nothing under these costs
                        found = place_quickly(problem, method, seed)
                        contenders.append((method, found.devices))
                        ran.append(method)
        outcome = compared(case, problem, placement.devices, contenders)
        outcomes.append(replace(outcome, again=tuple(ran)))
    return tuple(outcomes)


def run_again(others: Sequence[Placement], budget_seconds: float) -> list[str]:
    """The quick placers, the quickest first, that together took no longer than a budget."""
    quick = [other for other in others if is_quick(other)]
    quick.sort(key=lambda other: other.wall_seconds)
    spent = np.cumsum([other.wall_seconds for other in quick])
    return [each.method for each, s in zip(quick, spent, strict=True) if s <= budget_seconds]


def compared(
    case: Case,
    problem: PlacementProblem,
    devices: Ints,
    contenders: Sequence[tuple[str, Ints]],
) -> Outcome:
    """How a placement does beside others.

    Args:
        case: what is compared.
        problem: under the costs of the case.
        devices: (num_groups,) the placement.
        contenders: other placements, and by which placer each is.
    """
    many = np.stack([devices, *(each for _, each in contenders)])
    outcomes = simulate_many(problem, many, group_start=False)
    times = np.where(outcomes.feasible, outcomes.step_time, np.inf)
    best = 1 + int(np.argmin(times[1:])) if contenders else 0
    fits = bool(best and np.isfinite(times[best]))
    return Outcome(
        case=case,
        step_time=float(times[0]),
        other=contenders[best - 1][0] if fits else None,
        other_step_time=float(times[best]) if fits else np.inf,
    )
