"""`placeto measure`."""

from dataclasses import dataclass

import numpy as np

from placeto.cli.arguments import File, Graph, Json, Order, PlacementFile, RealCluster
from placeto.cli.output import check_outputs, note, print_result, progress
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.measurement import Effort, Runtime, RuntimeSettings, conduct, find_runnable
from placeto.measurement.pace import CALM
from placeto.measurement.timeline import side_by_side
from placeto.placement import load_placement
from placeto.reports.rows import measurement_row, seconds
from placeto.reports.tables import measurement_table
from placeto.simulation import simulate
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json
from placeto.support.units import format_seconds

FAILED = 1


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Runs training steps of a placement on the real devices, and times them.

    The exit status is 1 if the placement cannot be run.

    Attributes:
        order: fifo keeps the ops of each device in the simulated order, none leaves it to the
            runtime.
        warm_up: Steps before those that count.
        steps: Steps that count, at least.
        max_steps: Steps that count, at most, where a precision is asked for.
        precision: Measure on until the median is known to this fraction, such as 0.02.
        deadline: Seconds after which the placement is given up.
        timeline: Timeline of the simulated and of a measured step to write, for ui.perfetto.dev.
    """

    graph: Graph
    cluster: RealCluster
    placement: PlacementFile
    order: Order = "fifo"
    warm_up: int = Effort.warm_up
    steps: int = Effort.steps
    max_steps: int = Effort.max_steps
    precision: float = Effort.precision
    deadline: float = Effort.deadline_seconds
    timeline: File = None
    json: Json = False


def run(arguments: Measure) -> int:
    """Measures and prints."""
    timeline, least, most = arguments.timeline, arguments.steps, arguments.max_steps
    effort = Effort(arguments.warm_up, least, most, arguments.precision, arguments.deadline)
    inputs = (arguments.graph, arguments.cluster, arguments.placement)
    check_outputs(timeline, inputs=inputs)
    graph, cluster = load_graph(arguments.graph), load_cluster(arguments.cluster)
    problem, devices = load_placement(arguments.placement, graph, cluster)
    schedule = simulate(problem, devices)
    if timeline is not None and not np.isfinite(schedule.step_time):
        raise PlacetoError(
            f"{arguments.placement}: has an op on a device that cannot run it by the graph's "
            "op_seconds, so there is no simulated timeline to go beside; leave out --timeline"
        )
    what = f"measuring {graph.name} on {cluster.name}"
    settings = RuntimeSettings(order=arguments.order)
    with progress(what) as report, Runtime(cluster, settings) as runtime:
        report("finding its GraphDef")
        runnable = find_runnable(graph)
        report("running it")
        measurement = runtime.measure(problem, devices, runnable, effort, traces=1)
    seen = conduct(problem, schedule, measurement) if measurement.feasible else None
    row = {
        "graph": graph.name,
        "cluster": cluster.name,
        **measurement_row(measurement, graph),
        "placement": arguments.placement,
        "warm_up": effort.warm_up,
        "simulated_step_time": seconds(schedule.step_time),
        "order": arguments.order,
        "in_order": seen and seen.in_order,
        "send_wait": seen and seen.send_wait,
        "timeline": timeline if measurement.feasible else None,
    }
    tables = []
    if seen is not None:
        tables.append(measurement_table(problem, measurement, schedule.step_time, seen))
        if timeline is not None:
            write_json(timeline, side_by_side(problem, schedule, measurement))
            note(f"the timeline is in {timeline}")
    print_result(arguments.json, row, tables)
    if seen is None:
        note(f"it cannot be run: {measurement.reason}")
        return FAILED
    if seen.send_wait is not None and seen.tensors_wait:
        note(
            f"warning: tensors that are ready wait {format_seconds(seen.send_wait)} until they are "
            "sent: the workers have no thread to spare while an op runs; start them with more "
            "inter-op threads than cores (docs: Measure for real)"
        )
    if measurement.pace > CALM:
        note(
            f"warning: a core was {measurement.pace:.1f} times slower than at other times in this "
            "run, and stayed so; on a shared machine, measure again"
        )
    return 0
