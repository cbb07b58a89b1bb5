"""`placeto place`."""

import math
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import numpy as np
from tyro.conf import Positional, arg

from placeto.bounds.heads import raise_by_joins
from placeto.cli import INTERRUPTED, seconds_taken
from placeto.cli.arguments import (
    File,
    Json,
    OutputFile,
    ProblemArguments,
    Reserved,
    Settings,
    Timeline,
    parse_settings,
)
from placeto.cli.measure import FAILED
from placeto.cli.output import check_outputs, note, print_result, progress
from placeto.cli.pipelines import chosen_plan, of_pipeline, steps_asked, tell_of_runs
from placeto.cli.sources import (
    check_graph_file,
    extracted,
    is_source,
    saved,
    tried,
    tried_pipelines,
)
from placeto.cli.warnings import warn_unless_feasible, warn_unless_sure
from placeto.cluster import load_cluster
from placeto.graph import load_graph, save_graph
from placeto.measurement import Runnable, Runtime, RuntimeSettings, find_runnable
from placeto.models.agents import find_agent
from placeto.models.stored import read_policy
from placeto.placement import Placement
from placeto.placement.module_devices import check_device_map
from placeto.placement.offload import stores, with_stores
from placeto.placement.placed_graph import ORDERED, UNORDERED
from placeto.placement.reserve import reserved
from placeto.placers import place
from placeto.placers.device_maps import place_modules
from placeto.placers.measured import LEAST_RUNS, place_measured
from placeto.placers.microbatches import best_of, is_open
from placeto.placers.ordering import RANKED, RANKS_SHARE, reordered
from placeto.placers.registry import SLOW_SECONDS, find_placer, prepare, with_policy
from placeto.problem import PlacementProblem
from placeto.reports.microbatches import try_rows
from placeto.reports.page import RunContext, make_report, save_report
from placeto.reports.pipelines import plans_table
from placeto.reports.rows import (
    Baseline,
    CandidateRow,
    baseline,
    candidate_rows,
    device_rows,
    measured_keys,
    placement_row,
)
from placeto.reports.tables import candidates_table, device_table, placement_table
from placeto.simulation import simulate
from placeto.simulation.simulate import compile_kernel
from placeto.simulation.stages import PipelineSchedule
from placeto.simulation.timeline import save_timeline
from placeto.support.beside import compile_beside
from placeto.support.errors import PlacetoError
from placeto.support.files import write_json
from placeto.support.units import format_seconds

LEAST_SHARE = 2 / 3  # of the budget, for the search
PYTHON_SECONDS = 1.6  # that Python takes before the command begins, and after it
RUNS = 20  # where `--measure` names no number


@dataclass(frozen=True, kw_only=True)
class Place(ProblemArguments):
    """Finds a placement: a device for every group of ops.

    Attributes:
        graph: A bundled graph (see `placeto list`), a graph file, or a source that `placeto
            extract` takes. With microbatches=auto among its options, 1, 2, 4, … microbatches are
            tried, for half of the budget, and the best number is kept; with --pipeline from 2.
        others: With --pipeline: more of them, such as calibrate --torch makes of one module with
            several numbers of microbatches: the best is kept.
        save_graph: Graph file to write of a source, .json or .json.gz, with its GraphDef beside;
            goes with --output and --measure.
        method: A placer (see `placeto list`); by default auto, or placeto if --policy is of that
            agent.
        policy: A trained policy for auto, placeto or placeto-2019 to begin with: a run directory of
            `placeto train`, or one that ships (see `placeto list`).
        budget: Seconds for the search or training, from when the command begins: loading, grouping,
            the choice of an order and bounds are in it, for a third of it at most; extraction, and
            compiling after an installation, are not. With --measure, seconds of all searches
            together.
        seed: Where the placer's random numbers start.
        settings: Change a setting of the placer, such as passing=none of placeto; once for each.
            `placeto list --json` has the settings of all placers, with their defaults.
        output: Placement file to write, .json or .json.gz.
        device_map: Map from the PyTorch modules of the graph to devices to write, .json, as
            Accelerate's dispatch_model takes it: beside a GPU the CPU and the disk hold weights
            that do not fit, and compute nothing.
        pipeline: Plan to write, .json, of a pipeline of a PyTorch module for
            torch.distributed.pipelining: stages of whole modules along the forward pass, split
            where the simulated step is fastest. The graph has microbatches.
        schedule: With --pipeline: all microbatches forward, then all backward (gpipe), 1f1b, or
            several stages a device (interleaved). By default the fastest of those that fit in
            memory; the last one only where it is faster by a tenth.
        microbatches: With --pipeline: how many a source is extracted with, or the graph has.
        report: Page to write, .html, that explains the placement: a browser shows it, and it needs
            no network. Takes some seconds more, for other placers that it is compared with.
        measure: Run placements on the real devices, N runs at most (20 if no number is given), and
            keep the fastest. Searches and runs take turns: each search has op times and transfers
            corrected by the runs before. The best single device is among those that are run. With
            --pipeline: PyTorch runs N steps (7) of the best plan of each number of microbatches,
            and of the whole module in one process.
        measure_seconds: With --measure: no run begins when all runs have taken so many seconds.
    """

    graph: Positional[str]
    others: Annotated[Positional[tuple[str, ...]], arg(metavar="GRAPH …")] = ()
    method: Annotated[str | None, arg(metavar="PLACER")] = None
    policy: Annotated[str | None, arg(metavar="NAME|DIR")] = None
    budget: float = 30.0
    seed: int = 0
    settings: Settings = ()
    output: OutputFile = None
    save_graph: File = None
    timeline: Timeline = None
    device_map: File = None
    pipeline: File = None
    schedule: PipelineSchedule | None = None
    microbatches: Annotated[int | None, arg(metavar="M")] = None
    report: File = None
    measure: Annotated[tuple[int, ...] | None, arg(metavar="[N]")] = None
    measure_seconds: float = math.inf
    reserve: Reserved | None = None
    json: Json = False

    @property
    def graphs(self) -> tuple[str, ...]:
        """All of them."""
        return (self.graph, *self.others)


def run(arguments: Place) -> int:
    """Finds, writes and prints the placement."""
    arguments = of_pipeline(arguments)
    method, settings = _method(arguments)
    output, timeline, device_map = arguments.output, arguments.timeline, arguments.device_map
    inputs = (*arguments.graphs, arguments.cluster)
    _check_source(arguments)
    for option, wanted in (("report", arguments.report), ("measure", arguments.measure)):
        if wanted is not None and arguments.objective != "step-time":
            raise PlacetoError(f"--{option} is about single steps; leave out --objective")
    files = {
        "placement": output,
        "timeline": timeline,
        "device map": device_map,
        "pipeline": arguments.pipeline,
    }
    outputs = (*files.values(), arguments.report, arguments.save_graph)
    check_outputs(*outputs, inputs=inputs)
    steps = None
    if arguments.pipeline is not None and arguments.measure is not None:
        steps = steps_asked(arguments.measure)
    started = seconds_taken()
    graph = None if is_source(arguments.graph) else load_graph(arguments.graph)
    loading = seconds_taken() - started
    cluster = reserved(load_cluster(arguments.cluster), arguments.reserve)
    compiled = _compile(arguments, method, settings)
    loaded = seconds_taken()
    file = arguments.save_graph if arguments.pipeline is None else None
    tries, chosen, budget, seed = None, None, arguments.budget, arguments.seed
    if graph is None and is_open(arguments.graph):
        if arguments.pipeline is None:
            tries = tried(arguments.graph, arguments, cluster, method, budget / 2, seed, settings)
            budget = max(budget - tries.wall_seconds, budget / 2)
        else:
            tries = tried_pipelines(arguments.graph, cluster, arguments.schedule)
        graph = saved(tries.extraction, file)
    elif graph is None:
        graph = saved(extracted(arguments.graph), file)
    extraction = seconds_taken() - loaded
    if arguments.pipeline is not None:
        chosen = chosen_plan(arguments, graph, cluster, tries, steps)
        problem = chosen.placement.problem
        graph = problem.graph
        if arguments.save_graph is not None:
            save_graph(graph, arguments.save_graph)
            note(f"the graph is in {arguments.save_graph}")
    elif tries is not None:
        problem = tries.best.problem
    else:
        given = graph, cluster
        if device_map is not None:
            check_device_map(*given)
            if output is not None and (holding := stores(cluster)):
                names = ", ".join(cluster.devices[number].name for number in holding)
                raise PlacetoError(
                    f"--output {output}: in a device map {names} of cluster {cluster.name!r} "
                    "compute nothing, and a placement file would be read as if they did; leave out "
                    "either"
                )
            given = with_stores(*given, twice=None)
        problem = arguments.problem(*given)
    takes_time = (np.isfinite(problem.op_seconds) & (problem.op_seconds > 0)).any()
    if arguments.report is not None and not takes_time:
        raise PlacetoError(f"--report: no op of {graph.name!r} takes any time; give it op_seconds")
    bench, interrupted = None, tries is not None and tries.interrupted
    if arguments.measure is not None and chosen is None and not interrupted:
        bench = _prepare(arguments, problem)
    base = baseline(problem)
    mapped = device_map is not None and tries is None and chosen is None and bench is None
    if base.infeasibility is not None and not mapped:
        note(base.infeasibility)
    moves_ranks = method in RANKED and _moves_ranks(arguments, problem, settings)
    if not (compiled or mapped or tries or chosen or bench):
        started = seconds_taken()
        _ = base.lower_bound  # kept until it is told, but computed again for other ranks
        again = moves_ranks * (seconds_taken() - started)
        # Telling and writing take about as long as loading.
        spent = seconds_taken() - extraction + again + loading + PYTHON_SECONDS
        budget = max(budget - spent, LEAST_SHARE * budget)
    found = None
    with progress(f"{method} on {graph.name}") as report:
        if chosen is not None:
            placement = chosen.placement
        elif tries is not None and interrupted:
            placement = replace(tries.best, interrupted=True)
        elif mapped:
            placement = place_modules(
                graph, cluster, arguments.problem, method, budget, seed, report, settings
            )
            problem, base = placement.problem, baseline(placement.problem)
        elif bench is None:
            moving = moves_ranks * RANKS_SHARE * budget
            placement = place(problem, method, budget - moving, seed, report, settings)
            if tries is not None:
                better = best_of(placement, tries.best)
                placement = replace(better, interrupted=placement.interrupted)
            if moving and not placement.interrupted:
                report(f"moving the ranks of {problem.graph.num_ops} ops")
                placement = reordered(placement, moving, seed)
                if placement.problem is not problem:
                    problem = placement.problem
                    base = replace(base, ordered=problem)
        else:
            runtime, runnable, runs = bench
            with runtime:
                found = place_measured(
                    problem, runtime, runnable, method, budget, seed, settings, runs,
                    arguments.measure_seconds, progress=report,
                )  # fmt: skip
            placement = found.placement
    measured = [] if found is None else candidate_rows(found)
    if output is not None:
        placement.save(output)
    if timeline is not None:
        save_timeline(problem, simulate(problem, placement.devices), timeline)
    if device_map is not None:
        write_json(device_map, placement.device_map())
    if chosen is not None:
        chosen.plan.save(str(arguments.pipeline))
    page = arguments.report
    if page is not None and not _write_report(arguments, placement, base, measured):
        page = None
    row = placement_row(placement, base, arguments.grouping)
    if row["infeasibility"] is not None and (mapped or base.infeasibility is None):
        note(row["infeasibility"])
    if found is not None:
        row |= measured_keys(found, measured)
    if is_source(arguments.graph):
        row["save_graph"] = arguments.save_graph
    if tries is not None:
        row["microbatches"] = try_rows(tries)
        row["microbatches_stopped"] = tries.stopped
    if chosen is not None:
        row |= chosen.keys()
    row |= {"output": output, "timeline": timeline, "device_map": device_map}
    row |= {"pipeline_plan": arguments.pipeline, "report": page}
    tables = [
        placement_table(placement, base, None if found is None else measured),
        device_table(device_rows(placement)),
        *([candidates_table(measured)] if measured else []),
        *([plans_table(chosen.rows)] if chosen is not None and chosen.rows else []),
    ]
    print_result(arguments.json, row, tables)
    for what, path in files.items():
        if path is not None:
            note(f"the {what} is in {path}")
    warn_unless_feasible(placement)
    if chosen is not None:
        tell_of_runs(chosen)
    ran = found is not None and found.kept is not None
    ran = ran or (chosen is not None and chosen.plan.measured_step_time is not None)
    if problem.objective == "step-time" and not ran:
        warn_unless_sure(placement, base)
    if placement.interrupted:
        note("interrupted; this is the best placement until then")
    if placement.interrupted or page != arguments.report:
        return INTERRUPTED
    if not placement.feasible:
        return FAILED
    if measured and not any(each["feasible"] for each in measured):
        note(f"none of the candidates can be run: {measured[0]['reason']}")
        return FAILED
    if chosen is not None and chosen.failed is not None:
        note(f"none of the plans can be run: {chosen.failed}")
        return FAILED
    return 0


def _compile(arguments: Place, method: str, settings: Mapping[str, object]) -> bool:
    """Has compiled what is to run; whether that was more than to read it from the cache."""
    began = time.monotonic()
    if compile_beside("placeto.cli.compiling:compile_all", ("groups", "bounds"), raise_by_joins):
        note("compiling, once after an installation")
        compile_kernel()
    if arguments.pipeline is None:
        with progress(f"{method} on {arguments.graph}") as report:
            prepare(method, arguments.objective, settings, report)
    return time.monotonic() - began > SLOW_SECONDS


def _moves_ranks(
    arguments: Place, problem: PlacementProblem, settings: Mapping[str, object]
) -> bool:
    """Whether the order is the command's to choose, and the search may go on with its ranks.

    Not where it is told how many placements to simulate, and so has to find the same each time; nor
    on more than two devices, where it wins more by moving groups for as long.
    """
    free = arguments.order is None and "max_evaluations" not in settings
    pipelined = problem.graph.num_microbatches > 1 and problem.objective == "step-time"
    return free and pipelined and problem.num_devices == 2


def _method(arguments: Place) -> tuple[str, dict[str, object]]:
    """The placer, by default one that works with `--policy`; its settings by this and `--set`."""
    method = arguments.method or "auto"
    if arguments.policy is not None and not arguments.method:
        agent = find_agent(read_policy(arguments.policy).agent)
        method = "auto" if agent.guide else agent.name
    find_placer(method)
    settings = parse_settings(arguments.settings, method)
    if arguments.policy is None:
        return method, settings
    if method not in (able := with_policy()):
        raise PlacetoError(
            f"--policy {arguments.policy}: {method} works with no policy; placers that do: "
            f"{', '.join(able)}"
        )
    if "policy" in settings:
        raise PlacetoError(f"--policy {arguments.policy}: --set policy={settings['policy']}, too")
    return method, settings | {"policy": arguments.policy}


def _check_source(arguments: Place) -> None:
    """Raises `PlacetoError` where what is asked for and what is placed do not go together."""
    file, source = arguments.save_graph, all(map(is_source, arguments.graphs))
    if file is not None and not source:
        raise PlacetoError(f"--save-graph {file}: goes with a source, such as zoo:nmt?layers=4")
    if file is not None:
        check_graph_file(file)
    elif source and (
        arguments.output is not None
        or (arguments.measure is not None and arguments.pipeline is None)
    ):
        raise PlacetoError(
            f"{arguments.graph}: --output and --measure need its graph; give --save-graph FILE, too"
        )


def _prepare(arguments: Place, problem: PlacementProblem) -> tuple[Runtime, Runnable, int]:
    """What runs placements, the GraphDef, and how many runs at most; before a long search.

    Raises:
        PlacetoError: not one number that makes sense, a cluster or a graph that cannot be run.
    """
    asked = arguments.measure or ()
    runs = asked[0] if asked else RUNS
    if len(asked) > 1 or runs < LEAST_RUNS:
        text = " ".join(map(str, asked))
        raise PlacetoError(f"--measure {text}: expected one number of runs, from {LEAST_RUNS}")
    if not arguments.measure_seconds > 0:
        raise PlacetoError(
            f"--measure-seconds {arguments.measure_seconds:g}: expected a number above 0"
        )
    order = UNORDERED if arguments.order == UNORDERED else ORDERED
    runtime = Runtime(problem.cluster, RuntimeSettings(order))
    with progress(f"measuring {problem.graph.name}") as report:
        report("finding its GraphDef")
        saved_graph = arguments.save_graph
        runnable = find_runnable(problem.graph if saved_graph is None else load_graph(saved_graph))
    return runtime, runnable, runs


def _write_report(
    arguments: Place, placement: Placement, base: Baseline, measured: Sequence[CandidateRow]
) -> bool:
    """Writes the page, and says what it took; whether it was not interrupted by Ctrl-C."""
    assert arguments.report is not None
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    context = RunContext(_command(arguments), arguments.grouping, date, tuple(measured))
    began = time.monotonic()
    try:
        with progress(f"report of {placement.problem.graph.name}") as tell:
            report = make_report(placement, base, context, progress=tell)
            save_report(report, arguments.report)
    except KeyboardInterrupt:
        note("interrupted; there is no report")
        return False
    took = format_seconds(time.monotonic() - began)
    note(f"the report is in {arguments.report}; it took {took} more")
    return True


def _command(arguments: Place) -> str:
    """The command that finds a placement again, without the files that it writes."""
    words = ["placeto", "place", arguments.graph, "--cluster", arguments.cluster]
    words += ["--grouping", arguments.grouping]
    for option, name in (("--method", arguments.method), ("--policy", arguments.policy)):
        if name is not None:
            words += [option, name]
    words += ["--budget", f"{arguments.budget:g}", "--seed", str(arguments.seed)]
    for option, values in (("--set", arguments.settings), ("--pin", arguments.pin)):
        for value in values:
            words += [option, value]
    if arguments.measure is not None:
        words += ["--measure", *map(str, arguments.measure)]
    return shlex.join(words)
