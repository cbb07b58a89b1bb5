"""`placeto place`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from placeto.bounds.heads import join_heads
from placeto.cli import INTERRUPTED
from placeto.cli.arguments import (
    File,
    Graph,
    Order,
    OutputFile,
    ProblemArguments,
    Settings,
    parse_settings,
)
from placeto.cli.candidates import keep_fastest, prepare
from placeto.cli.measure import FAILED
from placeto.cli.output import check_outputs, note, print_json, print_rich
from placeto.cli.progress import progress
from placeto.cli.report import check_report, write_report
from placeto.graph import load_graph
from placeto.measurement import RuntimeSettings
from placeto.models.agents import find_agent
from placeto.models.stored import read_policy
from placeto.placement import Placement
from placeto.placement.module_devices import check_device_map
from placeto.placers import place
from placeto.placers.registry import find_placer, with_policy
from placeto.reports.rows import CandidateRow, baseline, device_rows, placement_row
from placeto.reports.tables import candidates_table, device_table, placement_table
from placeto.simulation import simulate
from placeto.simulation.simulate import compile_kernel
from placeto.simulation.timeline import save_timeline
from placeto.support.beside import compile_beside
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json


@dataclass(frozen=True, kw_only=True)
class Place(ProblemArguments):
    """Finds a placement: a device for every group of ops.

    Attributes:
        graph: A bundled graph (see `placeto list`) or a graph file.
        method: A placer (see `placeto list`); by default auto, or placeto if --policy is of that
            agent.
        policy: A trained policy for auto, placeto or placeto-2019 to begin with: a run directory of
            `placeto train`, or one that ships (see `placeto list`).
        budget: Seconds of search or training.
        seed: Where the placer's random numbers start.
        settings: Change a setting of the placer, such as passing=none of placeto; once for each.
            `placeto list --json` has the settings of all placers, with their defaults.
        output: Placement file to write, .json or .json.gz.
        timeline: Timeline to write, for ui.perfetto.dev.
        device_map: Map from the PyTorch modules of the graph to devices to write, .json, as
            Accelerate's dispatch_model takes it.
        report: Page to write, .html, that explains the placement: a browser shows it, and it needs
            no network. Takes some seconds more, for other placers that it is compared with.
        measure: Run the N fastest placements of the search, 3 if no number is given, and the best
            single device on the real devices, each twice as `placeto measure` does, and keep the
            fastest.
        order: With --measure: fifo keeps the ops of each device in the simulated order, none leaves
            it to the runtime.
        json: Print one JSON document instead of text.
    """

    graph: Graph
    method: Annotated[str | None, arg(metavar="PLACER")] = None
    policy: Annotated[str | None, arg(metavar="NAME|DIR")] = None
    budget: float = 30.0
    seed: int = 0
    settings: Settings = ()
    output: OutputFile = None
    timeline: File = None
    device_map: File = None
    report: File = None
    measure: Annotated[tuple[int, ...] | None, arg(metavar="[N]")] = None
    order: Order = "fifo"
    json: bool = False


def run(arguments: Place) -> int:
    """Finds, writes and prints the placement."""
    method = arguments.method or _usual_method(arguments.policy)
    settings = _settings(arguments, method)
    inputs = (arguments.graph, arguments.cluster)
    outputs = (arguments.output, arguments.timeline, arguments.device_map, arguments.report)
    check_outputs(*outputs, inputs=inputs)
    graph, cluster = load_graph(arguments.graph), arguments.load_cluster()
    if compile_beside("placeto.cli.compiling:compile_all", ("groups", "bounds"), join_heads):
        note("compiling, once after an installation")
        compile_kernel()
    problem = arguments.problem(graph, cluster)
    if arguments.device_map is not None:
        check_device_map(problem)
    if arguments.report is not None:
        check_report(problem)
    measuring = None
    if arguments.measure is not None:
        measuring = prepare(arguments.measure, problem, RuntimeSettings(order=arguments.order))
    base = baseline(problem)
    if base.infeasibility is not None:
        note(base.infeasibility)
    with progress(f"{method} on {problem.graph.name}") as report:
        placement = place(problem, method, arguments.budget, arguments.seed, report, settings)
    measured: list[CandidateRow] = []
    if measuring is not None and not placement.interrupted:
        if arguments.output is not None:
            placement.save(arguments.output)  # whatever becomes of the measuring
        placement, measured = keep_fastest(measuring, placement, base.single)
    if arguments.output is not None:
        placement.save(arguments.output)
    if arguments.timeline is not None:
        save_timeline(problem, simulate(problem, placement.devices), arguments.timeline)
    if arguments.device_map is not None:
        write_json(arguments.device_map, placement.device_map())
    report_file = arguments.report
    if report_file is not None and not write_report(arguments, placement, base, measured):
        report_file = None
    row = placement_row(placement, base, arguments.grouping)
    if base.infeasibility is None and row["infeasibility"] is not None:
        note(row["infeasibility"])
    if measuring is not None:
        times = [each["step_time"] for each in measured if each["kept"]]
        row["measured_step_time"] = times[0] if times else None
        row["measured"] = measured
    if arguments.json:
        files = {key: getattr(arguments, key) for key in ("output", "timeline", "device_map")}
        print_json({**row, **files, "report": report_file})
    else:
        tables = [placement_table(row), device_table(device_rows(placement))]
        print_rich(*tables, *([candidates_table(measured)] if measured else []))
    for path, what in (
        (arguments.output, "placement"),
        (arguments.timeline, "timeline"),
        (arguments.device_map, "device map"),
    ):
        if path is not None:
            note(f"the {what} is in {path}")
    warn_unless_feasible(placement)
    if placement.interrupted:
        note("interrupted; this is the best placement until then")
        return INTERRUPTED
    if report_file != arguments.report:
        return INTERRUPTED
    if not placement.feasible:
        return FAILED
    if measured and not any(each["feasible"] for each in measured):
        note(f"none of the candidates can be run: {measured[0]['reason']}")
        return FAILED
    return 0


def _usual_method(policy: str | None) -> str:
    """The placer, where none is named, that works with a policy."""
    if policy is None:
        return "auto"
    agent = find_agent(read_policy(policy).agent)
    return "auto" if agent.guide else agent.name


def _settings(arguments: Place, method: str) -> dict[str, object]:
    """What `--set` and `--policy` say."""
    find_placer(method)
    settings = parse_settings(arguments.settings, method)
    if arguments.policy is None:
        return settings
    if method not in (able := with_policy()):
        raise PlacetoError(
            f"--policy {arguments.policy}: {method} works with no policy; placers that do: "
            f"{', '.join(able)}"
        )
    if "policy" in settings:
        raise PlacetoError(f"--policy {arguments.policy}: --set policy={settings['policy']}, too")
    return settings | {"policy": arguments.policy}


def warn_unless_feasible(placement: Placement) -> None:
    """Says on stderr which device has too little memory for a placement."""
    for row in device_rows(placement):
        if row["peak_memory"] > row["memory_limit"]:
            note(
                f"warning: out of memory on {row['device']}: peak {row['peak_memory']} of "
                f"{row['memory_limit']} bytes"
            )
