"""Placements by hand, and reports of them."""

from typing import Any

from placeto import Placement, PlacementProblem, simulate
from placeto.reports.page import Report, RunContext, make_report
from placeto.reports.rows import baseline


def placement_of(problem: PlacementProblem, devices: Any, **known: Any) -> Placement:
    """A placement with what simulating it says."""
    schedule = simulate(problem, devices)
    return Placement(
        problem=problem,
        devices=schedule.devices,
        step_time=schedule.step_time,
        peak_memory=schedule.peak_memory,
        feasible=schedule.feasible,
        **known,
    )


def report_of(placement: Placement, **told: Any) -> Report:
    """Its report, by the placers that need no search."""
    return make_report(
        placement, baseline(placement.problem), RunContext("placeto place …", "none", **told)
    )
