"""What more and more microbatches make of a training step: rows of JSON, and a table."""

from collections.abc import Sequence
from typing import TypedDict

from rich import box
from rich.table import Table

from placeto.placers import place
from placeto.placers.microbatches import Tries
from placeto.reports.rows import examples_per_second, order_name, seconds
from placeto.reports.tables import format_rate, format_time


class TryRow(TypedDict):
    """The best placement that was found of so many microbatches; keys as in `placement_row`."""

    microbatches: int
    ops: int
    step_time: float | None
    examples_per_second: float | None
    single_device_step_time: float | None
    order: str
    feasible: bool
    found_by: str
    wall_seconds: float
    chosen: bool


def try_rows(tries: Tries) -> list[TryRow]:
    """A row for every number of microbatches that was tried, in that order."""
    return [
        {
            "microbatches": count,
            "ops": found.problem.graph.num_ops,
            "step_time": seconds(found.step_time),
            "examples_per_second": examples_per_second(found.problem.graph, found.step_time),
            "single_device_step_time": seconds(place(found.problem, "single").step_time),
            "order": order_name(found.problem),
            "feasible": found.feasible,
            "found_by": found.found_by,
            "wall_seconds": found.wall_seconds,
            "chosen": found is tries.best,
        }
        for count, found in tries.placements.items()
    ]


def tries_table(rows: Sequence[TryRow], stopped: str) -> Table:
    """Numbers of microbatches, a row each; the best stands out."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="Each searched for a short while. One device: step time on the best single one. "
        f"No more microbatches: {stopped}.",
        caption_justify="left",
    )
    for name in ("microbatches", "ops", "step time", "examples/s", "one device"):
        table.add_column(name, justify="right")
    for name in ("order", "fits", ""):
        table.add_column(name)
    for row in rows:
        table.add_row(
            str(row["microbatches"]),
            str(row["ops"]),
            format_time(row["step_time"]),
            format_rate(row["examples_per_second"]),
            format_time(row["single_device_step_time"]),
            row["order"],
            "yes" if row["feasible"] else "no",
            "chosen" if row["chosen"] else "",
            style="bold" if row["chosen"] else None,
        )
    return table
