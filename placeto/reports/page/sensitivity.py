"""Whether a choice of placement stands if costs are other than believed."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeto.placement import Placement
from placeto.problem import PlacementProblem
from placeto.reports.page.others import is_quick, place_quickly
from placeto.simulation import simulate_many
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


def scaled_problem(
    problem: PlacementProblem, *, bandwidth: float = 1.0, op_seconds: float = 1.0
) -> PlacementProblem:
    """The same groups and pins, with every channel's bandwidth and every op's time scaled.

    Args:
        problem: as it is believed to be.
        bandwidth: factor above 0 of the bytes a second of every channel; latencies and overheads
            stay as they are.
        op_seconds: factor above 0 of the seconds of every op on every kind of device; launch
            overheads stay as they are.
    """
    graph, cluster = problem.graph, problem.cluster
    columns = {kind: op_seconds * graph.op_seconds[kind] for kind in cluster.kinds}
    channels = [replace(each, bandwidth=bandwidth * each.bandwidth) for each in cluster.channels]
    return PlacementProblem(
        replace(graph, op_seconds=columns),
        replace(cluster, channels=tuple(channels)),
        problem.op_group,
        pins=problem.pins,
    )


@dataclass(frozen=True)
class Outcome:
    """How a placement does in a case, beside the best of other placers.

    Attributes:
        case: the costs.
        step_time: seconds of the placement, which is not changed; infinite if it does not fit.
        other: the placer whose placement is the fastest of the others'; None if none fits.
        other_step_time: seconds of that, infinite if none fits.
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

    The others' placements count as they are; the quickest placers also run again, in each case for
    an equal part of the budget.

    Args:
        placement: the choice.
        others: what other placers found with the believed costs.
        seed: where the random numbers of those that are run again start.
        budget_seconds: for all that is run again.
        progress: told which case is looked at.
    """
    share = budget_seconds / (len(CASES) - 1)
    again = run_again(others, share)
    end = time.monotonic()
    outcomes = []
    for case in CASES:
        progress(f"sensitivity: {case.name}")
        problem = scaled_problem(
            placement.problem, bandwidth=case.bandwidth, op_seconds=case.op_seconds
        )
        methods = [other.method for other in others]
        many = [placement.devices, *(other.devices for other in others)]
        if case != CASES[0]:
            end += share
            for method in again:
                if time.monotonic() < end:
                    with contextlib.suppress(PlacetoError):  # it finds nothing under these costs
                        many.append(place_quickly(problem, method, seed).devices)
                        methods.append(method)
        simulated = simulate_many(problem, np.stack(many), group_start=False)
        own, *times = np.where(simulated.feasible, simulated.step_time, np.inf).tolist()
        best = min(times, default=np.inf)
        other = methods[times.index(best)] if best < np.inf else None
        outcomes.append(Outcome(case, own, other, best))
    return tuple(outcomes)


def run_again(others: Sequence[Placement], budget_seconds: float) -> list[str]:
    """The quick placers, the quickest first, that together took no longer than a budget."""
    quick = [other for other in others if is_quick(other)]
    quick.sort(key=lambda other: other.wall_seconds)
    spent = np.cumsum([other.wall_seconds for other in quick])
    return [each.method for each, s in zip(quick, spent, strict=True) if s <= budget_seconds]
