"""`placeto compare`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeGuard

import numpy as np
from tyro.conf import Positional, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import (
    Methods,
    ProblemArguments,
    RayAddress,
    Reserved,
    RowsFile,
    TablesJson,
    Workers,
    parse_methods,
)
from placeto.cli.output import check_outputs, note, print_result, progress
from placeto.cli.sources import tell_of_estimates
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.placement import Placement
from placeto.placement.reserve import reserved
from placeto.placers import PLACERS, NotApplicable, place
from placeto.placers.strategies import STRATEGIES, outlook, verdict
from placeto.problem import PlacementProblem
from placeto.reports.rows import Baseline, baseline, placement_row
from placeto.reports.strategies import outlook_row, outlook_table
from placeto.reports.tables import compare_table
from placeto.simulation import save_timeline, simulate
from placeto.support.errors import PlacetoError


@dataclass(frozen=True, kw_only=True)
class Compare(ProblemArguments):
    """Compares placers on the same graphs and the same cluster, in one table a graph.

    Attributes:
        graph: Bundled graphs (see `placeto list`) or graph files.
        methods: Placers with commas between them; by default all that apply to the cluster.
        strategies: Of a PyTorch module, in placers' stead: single (one device), naive (layers on
            several, one after the other), pipeline, data-parallel; or all. Says whether to split.
        budget: Seconds of search or training of each placement.
        seed: Where the placers' random numbers start.
        save: Folder for every placement (GRAPH.METHOD.json) and its timeline for
            ui.perfetto.dev (GRAPH.METHOD.timeline.json.gz).
        workers: Search for so many placements at a time, each on one core, in Ray workers of this
            machine or of a cluster. By default one after the other, each on all cores.
    """

    graph: Positional[tuple[str, ...]]
    methods: Methods = None
    strategies: Methods = None
    budget: float = 30.0
    seed: int = 0
    output: RowsFile = None
    save: Annotated[str | None, arg(metavar="DIR")] = None
    workers: Workers = None
    ray_address: RayAddress = None
    reserve: Reserved | None = None
    json: TablesJson = False


def run(arguments: Compare) -> int:
    """Runs every placer on every graph; prints and writes what was found until Ctrl-C."""
    if arguments.strategies is not None:
        return _strategies(arguments, arguments.strategies)
    methods = parse_methods(arguments.methods, PLACERS)
    if not arguments.graph:
        raise PlacetoError("compare: no graph; name at least one, such as inception_v3")
    if arguments.ray_address is not None and arguments.workers is None:
        raise PlacetoError("--ray-address goes with workers; give --workers N, too")
    check_outputs(arguments.output, inputs=(*arguments.graph, arguments.cluster))
    folder = _folder(arguments.save)
    cluster = reserved(load_cluster(arguments.cluster), arguments.reserve)
    graphs = [load_graph(source) for source in dict.fromkeys(arguments.graph)]
    names = [graph.name for graph in graphs]
    for name in names:
        if names.count(name) > 1:
            raise PlacetoError(f"two graphs are called {name!r}; names must be unique")
    problems = [arguments.problem(graph, cluster) for graph in graphs]
    interrupted = False
    search: Iterable[Iterable[Placement]] = (
        _one_by_one(problem, methods, arguments) for problem in problems
    )
    if arguments.workers is not None:
        search, interrupted = _at_once(problems, methods, arguments.workers, arguments)
    compared: list[tuple[Baseline, list[Placement]]] = []
    rows: list[dict[str, Any]] = []
    try:
        for problem, placements in zip(problems, search, strict=True):
            base = baseline(problem)
            found: list[Placement] = []
            compared.append((base, found))
            if base.infeasibility is not None:
                note(f"{problem.graph.name}: {base.infeasibility}")
            for placement in placements:
                found.append(placement)
                rows.append(placement_row(placement, base, arguments.grouping))
                if folder is not None:
                    _save(placement, folder)
                if placement.interrupted:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
    document = {"rows": rows, "interrupted": interrupted}
    tables = [compare_table(found, base) for base, found in compared if found]
    print_result(arguments.json, document, tables, arguments.output)
    if folder is not None:
        note(f"the placements and their timelines (for ui.perfetto.dev) are in {folder}")
    if interrupted:
        note("interrupted; placers after that are left out")
    return INTERRUPTED if interrupted else 0


def _folder(name: str | None) -> Path | None:
    if name is None:
        return None
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlacetoError(f"{name}: cannot be made: {error.strerror}") from error
    check_outputs(str(folder / "placement.json"))
    return folder


def _save(placement: Placement, folder: Path) -> None:
    name = f"{placement.problem.graph.name.replace('/', '_')}.{placement.method}"
    placement.save(folder / f"{name}.json")
    if np.isfinite(placement.step_time):
        schedule = simulate(placement.problem, placement.devices)
        save_timeline(placement.problem, schedule, folder / f"{name}.timeline.json.gz")


def _one_by_one(
    problem: PlacementProblem, methods: Sequence[str], arguments: Compare
) -> Iterator[Placement]:
    """Placements of a problem, as they are asked for."""
    for method in methods:
        found: Placement | NotApplicable
        with progress(f"{method} on {problem.graph.name}") as report:
            try:
                found = place(problem, method, arguments.budget, arguments.seed, report)
            except NotApplicable as error:
                found = error
        if _applies(found, method, arguments):
            yield found


def _at_once(
    problems: Sequence[PlacementProblem], methods: Sequence[str], workers: int, arguments: Compare
) -> tuple[list[list[Placement]], bool]:
    """Placements of each problem, when all are there; after Ctrl-C, those that are, and True."""
    from placeto.placers.parallel import Search, place_all

    searches = [
        Search(problem, method, arguments.budget, arguments.seed)
        for problem in problems
        for method in methods
    ]
    found: dict[int, Placement] = {}
    interrupted = False
    with progress(f"{len(searches)} searches") as report:
        over = place_all(searches, workers, arguments.ray_address, report)
        try:
            with closing(over):
                found.update(
                    (number, result)
                    for number, result in over
                    if _applies(result, searches[number].method, arguments)
                )
        except KeyboardInterrupt:
            interrupted = True
    starts = range(0, len(searches), len(methods))
    numbers = [range(start, start + len(methods)) for start in starts]
    return [[found[each] for each in own if each in found] for own in numbers], interrupted


def _applies(
    found: Placement | NotApplicable, method: str, arguments: Compare
) -> TypeGuard[Placement]:
    """Whether there is a placement; says why not, which is an error of a method that was named."""
    if isinstance(found, Placement):
        return True
    if arguments.methods is not None:
        raise found
    note(f"{method} is left out: {found}")
    return False


def _strategies(arguments: Compare, text: str) -> int:
    """Compares strategies of running each graph, and says which one to take."""
    usual = Compare(graph=(), cluster="")
    for option in ("methods", "save", "workers", "ray_address", "pin", "order", "grouping"):
        if getattr(arguments, option) != getattr(usual, option):
            name = option.replace("_", "-")
            raise PlacetoError(f"--{name} does not go with --strategies; leave it out")
    names = [name.strip() for name in text.split(",")] if text != "all" else list(STRATEGIES)
    for name in names:
        if name not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise PlacetoError(f"there is no strategy {name!r}; strategies: {known}, or all")
    if not arguments.graph:
        raise PlacetoError("compare: no graph; name at least one, such as net.json.gz")
    check_outputs(arguments.output, inputs=(*arguments.graph, arguments.cluster))
    cluster = reserved(load_cluster(arguments.cluster), arguments.reserve)
    rows, tables, verdicts = [], [], []
    for graph in map(load_graph, dict.fromkeys(arguments.graph)):
        found = []
        for name in dict.fromkeys(names):
            with progress(f"{name} of {graph.name}"):
                try:
                    found.append(outlook(graph, cluster, name))  # type: ignore[arg-type]
                except NotApplicable as error:
                    note(f"{name} is left out: {error}")
        if not found:
            continue
        tell_of_estimates(graph, cluster)
        rows += [outlook_row(graph, cluster, each, found) for each in found]
        tables.append(outlook_table(graph, cluster, found))
        verdicts.append({"graph": graph.name, "verdict": verdict(found)})
    if not rows:
        raise PlacetoError("none of the strategies applies")
    document = {"rows": rows, "verdicts": verdicts}
    print_result(arguments.json, document, tables, arguments.output)
    for each in verdicts:
        note(f"{each['graph']}: {each['verdict']}")
    return 0
