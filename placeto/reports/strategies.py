"""What strategies would do, and which batches fit: rows of JSON and tables."""

from collections.abc import Sequence
from typing import TypedDict

from rich.table import Table
from rich.text import Text

from placeto.cluster import Cluster
from placeto.graph import ComputationGraph
from placeto.placers.fitting import BatchTry
from placeto.placers.strategies import Outlook
from placeto.reports.rows import examples_per_second
from placeto.reports.tables import (
    RATE,
    empty_table,
    format_peak,
    format_ratio,
    format_share,
    format_time,
)


class OutlookRow(TypedDict):
    """What a strategy would do; see `outlook_row`."""

    graph: str
    cluster: str
    strategy: str
    devices: list[str]
    step_time: float
    examples_per_second: float | None
    speedup: float | None
    peak_memory: list[int]
    memory_limit: list[int]
    feasible: bool
    how: str


def outlook_row(
    graph: ComputationGraph, cluster: Cluster, found: Outlook, every: Sequence[Outlook]
) -> OutlookRow:
    """A strategy's row; its speedup is over one device, None without one that fits."""
    single = [each for each in every if each.strategy == "single" and each.feasible]
    limit = {device.name: device.memory_bytes for device in cluster.devices}
    return {
        "graph": graph.name,
        "cluster": cluster.name,
        "strategy": found.strategy,
        "devices": list(found.devices),
        "step_time": found.step_time,
        "examples_per_second": examples_per_second(graph, found.step_time),
        "speedup": single[0].step_time / found.step_time if single else None,
        "peak_memory": list(found.peak_memory),
        "memory_limit": [limit[name] for name in found.devices],
        "feasible": found.feasible,
        "how": found.how,
    }


def outlook_table(graph: ComputationGraph, cluster: Cluster, found: Sequence[Outlook]) -> Table:
    """Strategies of a graph, a row each; the fastest that fits stands out."""
    rows = [outlook_row(graph, cluster, each, found) for each in found]
    fit = [row["step_time"] for row in rows if row["feasible"]]
    rate = [] if graph.batch is None else [RATE]
    columns = ["strategy", "devices", "step time", "times one", *rate, "fullest", "how"]
    title = f"{graph.name} on {cluster.name}"
    table = empty_table(title, columns, left=("strategy", "how"), whole=("strategy",))
    for row in rows:
        best = row["feasible"] and row["step_time"] == min(fit)
        examples = [] if not rate else [f"{row['examples_per_second']:.0f}"]
        table.add_row(
            row["strategy"],
            str(len(row["devices"])),
            format_time(row["step_time"]),
            format_ratio(row["speedup"]) if row["feasible"] else Text("OOM", style="red"),
            *examples,
            format_peak(row["peak_memory"], row["memory_limit"]),
            row["how"],
            style="bold" if best else "",
        )
    return table


def fit_table(tries: Sequence[BatchTry]) -> Table:
    """Batches that were tried, the smallest first, and whether they fit."""
    table = empty_table("", ["batch", "fullest device", "step time", "fits"], left=())
    for each in sorted(tries, key=lambda each: each.batch):
        fits = "yes" if each.found.feasible else Text("OOM", style="red")
        seconds = format_time(each.found.step_time)
        table.add_row(str(each.batch), format_share(each.fullness), seconds, fits)
    return table
