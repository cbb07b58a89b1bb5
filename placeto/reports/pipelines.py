"""Plans of pipelines beside each other, simulated or run: rows of JSON and a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from rich.table import Table

from placeto.placement import Placement
from placeto.placement.pipeline_plan import PipelinePlan
from placeto.reports.rows import examples_per_second, seconds
from placeto.reports.tables import RATE, empty_table, format_between, format_rate, format_time

if TYPE_CHECKING:
    from placeto.measurement.pytorch.pipelines import PipelineRun


class PlanRow(TypedDict):
    """A plan, or (`schedule` null) one process alone; seconds, null where it was not run."""

    microbatches: int
    schedule: str | None
    split_points: list[str]
    simulated_step_time: float | None
    measured_step_time: float | None
    examples_per_second: float | None
    samples: list[float]
    feasible: bool
    reason: str | None
    kept: bool


def plan_rows(
    found: Sequence[tuple[PipelinePlan, Placement]],
    runs: "Sequence[PipelineRun]",
    kept: PipelinePlan,
) -> list[PlanRow]:
    """A row a plan, then one a number of microbatches that one process ran.

    Args:
        found: all plans.
        runs: those that were run; of plans that do not fit there is none.
        kept: the plan that was chosen.
    """
    graph = found[0][1].problem.graph
    ran = {id(run.plan): run for run in runs}
    rows: list[PlanRow] = []
    for plan, placement in found:
        run = ran.get(id(plan))
        step = None if run is None else run.step_time
        rows.append({
            "microbatches": plan.microbatches,
            "schedule": plan.schedule,
            "split_points": list(plan.split_points),
            "simulated_step_time": seconds(plan.step_time),
            "measured_step_time": step,
            "examples_per_second": examples_per_second(graph, step or plan.step_time),
            "samples": [] if run is None else run.samples,
            "feasible": placement.feasible,
            "reason": None if run is None else run.reason,
            "kept": plan is kept,
        })  # fmt: skip
    for run in runs:
        if run.plan is None:
            step = run.step_time
            rows.append({
                "microbatches": run.microbatches,
                "schedule": None,
                "split_points": [],
                "simulated_step_time": None,
                "measured_step_time": step,
                "examples_per_second": None if step is None else examples_per_second(graph, step),
                "samples": run.samples,
                "feasible": True,
                "reason": run.reason,
                "kept": False,
            })  # fmt: skip
    return rows


def plans_table(rows: Sequence[PlanRow]) -> Table:
    """Plans, a row each; the chosen one stands out."""
    ran = any(row["samples"] for row in rows)
    rate = [RATE] if any(row["examples_per_second"] for row in rows) else []
    times = ["simulated", *(["measured", "between"] if ran else []), *rate]
    table = empty_table(
        "plans",
        ["schedule", "M", "split at", *times, ""],
        left=("schedule", "split at", ""),
        whole=("schedule", *times),
        caption="M: microbatches."
        + " Measured: the median of steps that PyTorch ran; between: all of them." * ran,
    )
    table.collapse_padding = True
    for row in rows:
        ends = [min(row["samples"]), max(row["samples"])] if row["samples"] else []
        measured = [format_time(row["measured_step_time"]), format_between(ends)] if ran else []
        said = "chosen" if row["kept"] else row["reason"] or ""
        table.add_row(
            row["schedule"] or "one process",
            str(row["microbatches"]),
            ", ".join(row["split_points"]) or "not",
            format_time(row["simulated_step_time"]),
            *measured,
            *(format_rate(row["examples_per_second"]) for _ in rate),
            said if row["feasible"] else "does not fit",
            style="bold" if row["kept"] else None,
        )
    return table
