"""What a placement is compared with: quick placers, under the costs as believed and others."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from placeto.placement import Placement
from placeto.placers import PLACERS, place
from placeto.problem import PlacementProblem
from placeto.reports.uncertainty import Case, cases
from placeto.search.incumbent import Clock
from placeto.simulation import simulate_many
from placeto.simulation.scaled import scaled_problem
from placeto.support.arrays import Ints
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent

POLICY = "placeto"
FIRST = ("single", "expert", "etf", "heft")
# The policy's likeliest devices, without a search or a training.
GREEDY: dict[str, object] = {"samples": 0, "fine_tune": 0.0}


@dataclass(frozen=True)
class Others:
    """What other placers found: one placement a placer; of those that have none, why."""

    placements: tuple[Placement, ...]
    left_out: dict[str, str]


def quick_placers(method: str) -> list[str]:
    """The other placers that end by themselves; those that `auto` is made of first.

    The trained policy is among them if the placement is by `auto`, whose compiled code it shares.
    """
    parts = [*FIRST, POLICY] if method == "auto" else FIRST
    rest = [name for name, placer in PLACERS.items() if not placer.anytime]
    return [name for name in dict.fromkeys([*parts, *rest]) if name != method]


def place_quickly(problem: PlacementProblem, method: str, seed: int) -> Placement:
    """What a quick placer finds; of the policy its likeliest devices.

    Raises:
        PlacetoError: the placer finds nothing.
        KeyboardInterrupt: after Ctrl-C, also where the placer has found something until then.
    """
    placement = place(problem, method, seed=seed, settings=GREEDY if method == POLICY else None)
    if placement.interrupted:
        raise KeyboardInterrupt
    return placement


def is_quick(placement: Placement) -> bool:
    """Whether `place_quickly` would run its placer as it was run."""
    if placement.method == POLICY:
        return dict(placement.settings) == GREEDY
    return placement.method in PLACERS and not PLACERS[placement.method].anytime


def others(
    problem: PlacementProblem,
    methods: Sequence[str],
    seed: int = 0,
    budget_seconds: float = 5.0,
    progress: Progress = silent,
    clock: Clock = time.monotonic,
) -> Others:
    """Runs placers of `quick_placers` in turn; none begins when the budget is spent."""
    end = clock() + budget_seconds
    placements: list[Placement] = []
    left_out: dict[str, str] = {}
    for method in methods:
        if clock() >= end:
            left_out[method] = f"the {budget_seconds:g} s for the other placers were spent"
            continue
        progress(f"placing by {method}")
        try:
            placements.append(place_quickly(problem, method, seed))
        except PlacetoError as error:
            left_out[method] = str(error)
    return Others(tuple(placements), left_out)


@dataclass(frozen=True)
class Outcome:
    """How a placement does in a case, beside the best of the other placers, None if none fits.

    Step times are in seconds, infinite for what does not fit.
    """

    case: Case
    step_time: float
    other: str | None
    other_step_time: float

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
) -> tuple[Outcome, ...]:
    """Simulates a placement under other costs, and lets other placers place under these.

    What others found with the believed costs counts as it is; the quickest placers also run again,
    in each case for an equal part of the budget. All are in the order of their own problem.
    """
    believed, *rest = cases(placement.problem.cluster)
    share = budget_seconds / len(rest)
    again = run_again(others, share)
    end = time.monotonic()
    outcomes = []
    for case in (believed, *rest):
        progress(f"sensitivity: {case.name}")
        scaled = partial(
            scaled_problem, bandwidth=case.bandwidth, ends=case.ends, op_seconds=case.op_seconds
        )
        problem = scaled(placement.problem)
        (own,) = _feasible_times(problem, [placement.devices])
        if others and others[0].problem is not placement.problem:
            problem = scaled(others[0].problem)
        methods = [other.method for other in others]
        many = [other.devices for other in others]
        if case != believed:
            end += share
            for method in again:
                if time.monotonic() < end:
                    with contextlib.suppress(PlacetoError):  # it finds nothing under these costs
                        many.append(place_quickly(problem, method, seed).devices)
                        methods.append(method)
        times = _feasible_times(problem, many)
        best = min(times, default=np.inf)
        other = methods[times.index(best)] if best < np.inf else None
        outcomes.append(Outcome(case, own, other, best))
    return tuple(outcomes)


def _feasible_times(problem: PlacementProblem, many: Sequence[Ints]) -> list[float]:
    """Step times in seconds of (num_groups,) placements, infinite for what does not fit."""
    if not many:
        return []
    found = simulate_many(problem, np.stack(many), group_start=False)
    times: list[float] = np.where(found.feasible, found.step_time, np.inf).tolist()
    return times


def run_again(others: Sequence[Placement], budget_seconds: float) -> list[str]:
    """The quick placers, the quickest first, that together took no longer than a budget."""
    quick = [other for other in others if is_quick(other)]
    quick.sort(key=lambda other: other.wall_seconds)
    spent = np.cumsum([other.wall_seconds for other in quick])
    return [each.method for each, s in zip(quick, spent, strict=True) if s <= budget_seconds]
