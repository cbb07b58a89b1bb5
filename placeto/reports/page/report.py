"""Everything that a report says of a placement, computed before any of it is drawn."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeto.placement import Placement
from placeto.reports.page.device_time import DeviceSpans, device_spans
from placeto.reports.page.others import Others, others, quick_placers
from placeto.reports.page.sensitivity import Outcome, sensitivity
from placeto.reports.rows import Baseline, CandidateRow
from placeto.simulation import Schedule, simulate
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent

OTHERS_SECONDS = SENSITIVITY_SECONDS = 4.0


@dataclass(frozen=True)
class RunContext:
    """What a report is told, as the placement does not know it.

    Attributes:
        command: that finds the placement again.
        grouping: as it was asked for.
        date: when it was found, for people.
        measured: rows of placements that were run for real, see `keep_fastest`.
    """

    command: str
    grouping: str
    date: str = ""
    measured: tuple[CandidateRow, ...] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """A placement and all that a report says of it.

    Attributes:
        placement: the choice.
        base: what it is measured by.
        context: what was run.
        schedule: the simulated step.
        others: what other placers found, the choice not among them.
        outcomes: how the choice does under other costs.
        seconds: what computing all this took.
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
    """Computes a report; placers that need no search run once more for it.

    Args:
        placement: the choice.
        base: of its problem.
        context: what was run.
        found: what other placers found; by default they are run, for a few seconds.
        progress: told of what is going on.

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
        quick = [name for name in quick_placers(placement.method) if name != placement.method]
        rest = others(problem, quick, placement.seed, OTHERS_SECONDS, progress)
    else:
        rest = Others(tuple(each for each in found if each is not placement), {})
    seed, budget = placement.seed, SENSITIVITY_SECONDS
    outcomes = sensitivity(placement, rest.placements, seed, budget, progress)
    took = time.monotonic() - began
    return Report(placement, base, context, schedule, rest, outcomes, took)
