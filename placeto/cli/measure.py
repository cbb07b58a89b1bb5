"""`placeto measure`."""

from dataclasses import dataclass
from typing import Any

from placeto.bundle import find
from placeto.cli.arguments import ClusterName, Graph
from placeto.cli.output import note, print_json, print_rich
from placeto.cli.progress import progress
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.measurement import Effort, Measurement, Runtime, find_runnable
from placeto.placement import load_placement
from placeto.problem import PlacementProblem
from placeto.reports.rows import seconds
from placeto.reports.tables import measurement_table
from placeto.simulation import step_times

FAILED = 1


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Runs training steps of a placement on the real devices, and times them.

    The exit status is 1 if the placement cannot be run.

    Attributes:
        graph: A bundled graph (see `placeto list`) or a graph file.
        cluster: A preset (see `placeto list`) or a cluster file, whose devices are there.
        placement: A placement file, as `placeto place -o` writes it.
        warm_up: Steps before those that count.
        steps: Steps that count, at least.
        max_steps: Steps that count, at most, where a precision is asked for.
        precision: Measure on until the median is known to this fraction, such as 0.02.
        deadline: Seconds after which the placement is given up.
        json: Print one JSON document instead of text.
    """

    graph: Graph
    cluster: ClusterName
    placement: str
    warm_up: int = Effort.warm_up
    steps: int = Effort.steps
    max_steps: int = Effort.max_steps
    precision: float = Effort.precision
    deadline: float = Effort.deadline_seconds
    json: bool = False


def run(arguments: Measure) -> int:
    """Measures and prints."""
    effort = Effort(
        arguments.warm_up,
        arguments.steps,
        arguments.max_steps,
        arguments.precision,
        arguments.deadline,
    )
    graph, cluster = load_graph(arguments.graph), load_cluster(arguments.cluster)
    problem, devices = load_placement(arguments.placement, graph, cluster)
    folder = find("graphs", (".json.gz", ".json"), arguments.graph).parent
    what = f"measuring {graph.name} on {cluster.name}"
    with progress(what) as report, Runtime(cluster) as runtime:
        report("finding its GraphDef")
        runnable = find_runnable(graph, folder)
        report("running it")
        measurement = runtime.measure(problem, devices, runnable, effort)
    row = _row(problem, measurement) | {
        "placement": arguments.placement,
        "warm_up": effort.warm_up,
        "simulated_step_time": seconds(float(step_times(problem, devices[None])[0])),
    }
    if arguments.json:
        print_json(row)
    elif measurement.feasible:
        print_rich(measurement_table(row))
    if not measurement.feasible:
        note(f"it cannot be run: {measurement.reason}")
        return FAILED
    return 0


def _row(problem: PlacementProblem, measurement: Measurement) -> dict[str, Any]:
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "feasible": measurement.feasible,
        "reason": measurement.reason,
        "step_time": seconds(measurement.step_time),
        "deviation": seconds(measurement.deviation),
        "interval": [seconds(end) for end in measurement.interval],
        "samples": list(measurement.samples),
    }
