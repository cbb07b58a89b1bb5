"""`placeto place`."""

from dataclasses import dataclass

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import (
    File,
    Graph,
    OutputFile,
    ProblemArguments,
    Settings,
    parse_settings,
)
from placeto.cli.output import check_outputs, note, print_json, print_rich
from placeto.cli.progress import progress
from placeto.graph import load_graph
from placeto.placement import Placement
from placeto.placers import place
from placeto.placers.registry import find_placer
from placeto.reports.rows import baseline, device_rows, placement_row
from placeto.reports.tables import device_table, placement_table
from placeto.simulation import simulate
from placeto.simulation.timeline import save_timeline


@dataclass(frozen=True, kw_only=True)
class Place(ProblemArguments):
    """Finds a placement: a device for every group of ops.

    Attributes:
        graph: A bundled graph (see `placeto list`) or a graph file.
        method: A placer (see `placeto list`).
        budget: Seconds of search or training.
        seed: Where the placer's random numbers start.
        settings: Change a setting of the placer, such as passing=none of placeto; once for each.
            `placeto list --json` has the settings of all placers, with their defaults.
        output: Placement file to write, .json or .json.gz.
        timeline: Timeline to write, for ui.perfetto.dev.
        json: Print one JSON document instead of text.
    """

    graph: Graph
    method: str = "placeto"
    budget: float = 30.0
    seed: int = 0
    settings: Settings = ()
    output: OutputFile = None
    timeline: File = None
    json: bool = False


def run(arguments: Place) -> int:
    """Finds, writes and prints the placement."""
    find_placer(arguments.method)
    settings = parse_settings(arguments.settings, arguments.method)
    inputs = (arguments.graph, arguments.cluster)
    check_outputs(arguments.output, arguments.timeline, inputs=inputs)
    problem = arguments.problem(load_graph(arguments.graph), arguments.load_cluster())
    base = baseline(problem)
    if base.infeasibility is not None:
        note(base.infeasibility)
    with progress(f"{arguments.method} on {problem.graph.name}") as report:
        placement = place(
            problem, arguments.method, arguments.budget, arguments.seed, report, settings
        )
    if arguments.output is not None:
        placement.save(arguments.output)
    if arguments.timeline is not None:
        save_timeline(problem, simulate(problem, placement.devices), arguments.timeline)
    row = placement_row(placement, base, arguments.grouping)
    if arguments.json:
        print_json(row | {"output": arguments.output, "timeline": arguments.timeline})
    else:
        print_rich(placement_table(row), device_table(device_rows(placement)))
    for path, what in ((arguments.output, "placement"), (arguments.timeline, "timeline")):
        if path is not None:
            note(f"the {what} is in {path}")
    warn_unless_feasible(placement)
    if placement.interrupted:
        note("interrupted; this is the best placement until then")
        return INTERRUPTED
    return 0


def warn_unless_feasible(placement: Placement) -> None:
    """Says on stderr which device has too little memory for a placement."""
    for row in device_rows(placement):
        if row["peak_memory"] > row["memory_limit"]:
            note(
                f"warning: out of memory on {row['device']}: peak {row['peak_memory']} of "
                f"{row['memory_limit']} bytes"
            )
