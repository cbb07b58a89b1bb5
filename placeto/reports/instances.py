"""Named instances, and how placements stand beside the best known: rows of JSON and tables."""

from collections.abc import Iterable, Sequence
from typing import TypedDict

from rich.table import Table

from placeto.reports.rows import seconds
from placeto.reports.tables import empty_table, format_time
from placeto.zoo.instances import Instance, Standing


class InstanceRow(TypedDict):
    """An instance, and what is known of it; see `Instance`."""

    name: str
    graph: str
    cluster: str
    grouping: str
    best_step_time: float
    found_by: str
    lower_bound: float
    gap: float


class StandingRow(TypedDict):
    """How the placement of a file stands; `gap` is to the best known, see `Standing`."""

    file: str
    instance: str
    step_time: float | None
    feasible: bool
    best_step_time: float
    found_by: str
    gap: float | None
    lower_bound: float
    verdict: str


def instance_row(instance: Instance) -> InstanceRow:
    """The row of an instance; `gap` is of the best known to the bound."""
    return {
        "name": instance.name,
        "graph": instance.graph,
        "cluster": instance.cluster,
        "grouping": instance.grouping,
        "best_step_time": instance.best.step_time,
        "found_by": instance.best.found_by,
        "lower_bound": instance.lower_bound,
        "gap": instance.gap,
    }


def standing_row(path: str, standing: Standing) -> StandingRow:
    """The row of a file's placement on an instance."""
    instance = standing.instance
    return {
        "file": path,
        "instance": instance.name,
        "step_time": seconds(standing.step_time),
        "feasible": standing.feasible,
        "best_step_time": instance.best.step_time,
        "found_by": instance.best.found_by,
        "gap": seconds(standing.gap),
        "lower_bound": instance.lower_bound,
        "verdict": standing.verdict,
    }


def instances_table(instances: Iterable[Instance]) -> Table:
    """A line an instance, for people."""
    columns = ["name", "best known", "bound", "gap", "found by"]
    table = empty_table("instances", columns, left=("name", "found by"), whole=("name",))
    for each in instances:
        times = map(format_time, (each.best.step_time, each.lower_bound))
        table.add_row(each.name, *times, f"{each.gap:.1%}", each.best.found_by)
    return table


def standings_table(rows: Sequence[StandingRow]) -> Table:
    """A line a file and instance, for people."""
    columns = ["file", "instance", "step time", "best known", "bound", "verdict"]
    table = empty_table("", columns, left=("file", "instance", "verdict"), whole=("instance",))
    for row in rows:
        times = (row["step_time"], row["best_step_time"], row["lower_bound"])
        table.add_row(row["file"], row["instance"], *map(format_time, times), row["verdict"])
    return table
