"""What a report says of a placement, beside what is read off the placement when it is drawn."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeto.placement import Placement
from placeto.reports.page.others import Others, Outcome, others, quick_placers, sensitivity
from placeto.reports.rows import Baseline, CandidateRow
from placeto.simulation import DeviceSpans, Schedule, device_spans, simulate
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent

BUDGET_SECONDS = 4.0  # of other placers, and of these again under other costs


@dataclass(frozen=True)
class RunContext:
    """What the placement does not know: the command that finds it again, the grouping it asked for.

    And when it was found, for people, and which placements were run for real, see `CandidateRow`.
    """

    command: str
    grouping: str
    date: str = ""
    measured: tuple[CandidateRow, ...] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """A placement, the choice, and all that a report says of it.

    Attributes:
        others: what other placers found, the choice not among them.
        outcomes: how the choice does under other costs.
        seconds: what the other placers and costs took.
    """

    placement: Placement
    base: Baseline
    context: RunContext
    schedule: Schedule
    others: Others
    outcomes: tuple[Outcome, ...]
    seconds: float

    @cached_property
    def spans(self) -> list[DeviceSpans]:
        """What each device does in the step."""
        return device_spans(self.placement.problem, self.schedule)

    @property
    def ranked(self) -> list[Placement]:
        """The choice and what others found, the fastest that fits first."""
        placements = (self.placement, *self.others.placements)
        return sorted(placements, key=lambda each: (not each.feasible, each.step_time))

    @property
    def lower_bound(self) -> float:
        """Seconds that no placement that fits is below, by whatever proves most."""
        return self.base.bound(self.placement)


def make_report(
    placement: Placement,
    base: Baseline,
    context: RunContext,
    found: Sequence[Placement] | None = None,
    progress: Progress = silent,
) -> Report:
    """Computes a report of a choice, beside what other placers found.

    By default those that need no search are run for that, for a few seconds.

    Raises:
        PlacetoError: an op of the placement never finishes, or none takes any time.
    """
    began = time.monotonic()
    problem = placement.problem
    schedule = simulate(problem, placement.devices)
    if not np.isfinite(schedule.step_time):
        raise PlacetoError(
            f"no report of a step that never ends: {problem.graph.name!r} has an op that cannot "
            "run where the placement has it"
        )
    if schedule.step_time == 0:
        raise PlacetoError(
            f"no report of a step that takes no time: no op of {problem.graph.name!r} does; "
            "give it op_seconds"
        )
    if found is None:
        quick = quick_placers(placement.method)
        rest = others(base.single.problem, quick, placement.seed, BUDGET_SECONDS, progress)
    else:
        rest = Others(tuple(each for each in found if each is not placement), {})
    outcomes = sensitivity(placement, rest.placements, placement.seed, BUDGET_SECONDS, progress)
    took = time.monotonic() - began
    return Report(placement, base, context, schedule, rest, outcomes, took)
