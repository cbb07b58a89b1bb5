"""`placeto simulate`."""

import time
from dataclasses import dataclass

from placeto.cli.arguments import ClusterName, Graph, Json, PlacementFile, Timeline
from placeto.cli.output import check_outputs, note, print_result
from placeto.cli.warnings import warn_unless_feasible
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.placement import Placement, load_placement
from placeto.reports.rows import baseline, device_rows, placement_row
from placeto.reports.tables import device_table, placement_table
from placeto.simulation import simulate
from placeto.simulation.timeline import save_timeline


@dataclass(frozen=True, kw_only=True)
class Simulate:
    """Simulates one training step of a placement."""

    graph: Graph
    cluster: ClusterName
    placement: PlacementFile
    timeline: Timeline = None
    json: Json = False


def run(arguments: Simulate) -> int:
    """Simulates and prints; writes the timeline."""
    inputs = (arguments.graph, arguments.cluster, arguments.placement)
    check_outputs(arguments.timeline, inputs=inputs)
    graph, cluster = load_graph(arguments.graph), load_cluster(arguments.cluster)
    problem, devices = load_placement(arguments.placement, graph, cluster)
    begin = time.perf_counter()
    schedule = simulate(problem, devices)
    placement = Placement(
        problem=problem,
        devices=devices,
        step_time=schedule.step_time,
        peak_memory=schedule.peak_memory,
        feasible=schedule.feasible,
        wall_seconds=time.perf_counter() - begin,
    )
    if arguments.timeline is not None:
        save_timeline(problem, schedule, arguments.timeline)
    base, by_device = baseline(problem), device_rows(placement)
    document = {
        **placement_row(placement, base, "given"),
        "by_device": by_device,
        "transfers": len(schedule.transfers),
        "transferred_bytes": int(graph.tensor_bytes[schedule.transfers.tensor].sum()),
        "timeline": arguments.timeline,
    }
    tables = [placement_table(placement, base), device_table(by_device)]
    print_result(arguments.json, document, tables)
    if arguments.timeline is not None:
        note(f"the timeline is in {arguments.timeline}")
    warn_unless_feasible(placement)
    return 0
