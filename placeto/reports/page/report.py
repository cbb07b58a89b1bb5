"""Everything that a report says of a placement, computed before any of it is drawn."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeto.placement import Placement
from placeto.reports.page.device_time import DeviceSpans, device_spans
from placeto.reports.page.group_layout import GroupLayout, lay_out
from placeto.reports.page.others import Others, others, quick_placers
from placeto.reports.page.sensitivity import Outcome, sensitivity
from placeto.reports.rows import (
    Baseline,
    CandidateRow,
    PlacementRow,
    gap,
    placement_row,
    why_nothing_fits,
)
from placeto.simulation import Schedule, memory_over_time, simulate
from placeto.support.arrays import Floats, Ints
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
        spans: what each device does in it.
        instants: (num_instants,) seconds at which memory in use changes.
        memory: (num_instants, num_devices) bytes from each instant on.
        layout: the group graph.
        others: what other placers found, the choice not among them.
        outcomes: how the choice does under other costs.
        seconds: what computing all this took.
    """

    placement: Placement
    base: Baseline
    context: RunContext
    schedule: Schedule
    spans: tuple[DeviceSpans, ...]
    instants: Floats
    memory: Ints
    layout: GroupLayout
    others: Others
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def rows(self) -> list[PlacementRow]:
        """The choice and what others found, see `placement_row`, the fastest that fits first."""
        placements = (self.placement, *self.others.placements)
        ranked = sorted(placements, key=lambda each: (not each.feasible, each.step_time))
        grouping = self.context.grouping
        return [
            {**placement_row(each, self.base, grouping), "chosen": each is self.placement}
            for each in ranked
        ]

    @property
    def lower_bound(self) -> float:
        """Seconds that no placement that fits is below, by whatever proves most."""
        return max(self.base.lower_bound, self.placement.lower_bound)

    @property
    def infeasibility(self) -> str | None:
        """Why no placement fits in memory; None if that is not proven."""
        return why_nothing_fits(self.placement, self.base)

    @property
    def gap(self) -> float | None:
        """At most how many times the optimum the step time is; None if it does not fit."""
        return gap(self.placement, self.base)

    @property
    def kept(self) -> CandidateRow | None:
        """The row of the placement that ran fastest of those that were run; None if none was."""
        return next((row for row in self.context.measured if row["kept"]), None)

    @property
    def fullest(self) -> int:
        """The device nearest to its memory limit; a limit of 0 bytes counts as 1."""
        limit = np.maximum(self.placement.problem.memory_limit, 1)
        return int(np.argmax(self.placement.peak_memory / limit))

    @property
    def single_device(self) -> str:
        """The best single device, which has most groups where it cannot have all."""
        single = self.base.single
        return single.problem.cluster.devices[np.bincount(single.devices).argmax()].name

    @property
    def one_device(self) -> str | None:
        """The one device that does everything though there are more; None if several do."""
        used = np.unique(self.placement.devices)
        devices = self.placement.problem.cluster.devices
        return devices[used[0]].name if len(used) == 1 < len(devices) else None


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
    outcomes = sensitivity(
        placement, rest.placements, placement.seed, SENSITIVITY_SECONDS, progress
    )
    instants, memory = memory_over_time(problem, schedule)
    return Report(
        placement=placement,
        base=base,
        context=context,
        schedule=schedule,
        spans=tuple(device_spans(problem, schedule)),
        instants=instants,
        memory=memory,
        layout=lay_out(problem, schedule),
        others=rest,
        outcomes=outcomes,
        seconds=time.monotonic() - began,
    )
