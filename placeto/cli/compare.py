"""`placeto compare`."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeGuard

import numpy as np
from tyro.conf import Positional, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import (
    Methods,
    ProblemArguments,
    RayAddress,
    RowsFile,
    Workers,
    parse_methods,
)
from placeto.cli.output import check_outputs, note, print_rows, progress
from placeto.cluster import load_cluster
from placeto.graph import load_graph
from placeto.placement import Placement
from placeto.placers import PLACERS, NotApplicable, place
from placeto.problem import PlacementProblem
from placeto.reports.rows import Baseline, baseline, placement_row
from placeto.reports.tables import compare_table
from placeto.simulation import save_timeline, simulate
from placeto.support.errors import PlacetoError


@dataclass(frozen=True, kw_only=True)
class Compare(ProblemArguments):
    """Compares placers on the same graphs and the same cluster, in one table a graph.

    Attributes:
        graph: Bundled graphs (see `placeto list`) or graph files.
        methods: Placers with commas between them; by default all that apply to the cluster.
        budget: Seconds of search or training of each placement.
        seed: Where the placers' random numbers start.
        save: Folder for every placement (GRAPH.METHOD.json) and its timeline for
            ui.perfetto.dev (GRAPH.METHOD.timeline.json.gz).
        workers: Search for so many placements at a time, each on one core, in Ray workers of this
            machine or of a cluster. By default one after the other, each on all cores.
        json: Print one JSON document instead of tables.
    """

    graph: Positional[tuple[str, ...]]
    methods: Methods = None
    budget: float = 30.0
    seed: int = 0
    output: RowsFile = None
    save: Annotated[str | None, arg(metavar="DIR")] = None
    workers: Workers = None
    ray_address: RayAddress = None
    json: bool = False


def run(arguments: Compare) -> int:
    """Runs every placer on every graph; prints and writes what was found until Ctrl-C."""
    methods = parse_methods(arguments.methods, PLACERS)
    if not arguments.graph:
        raise PlacetoError("compare: no graph; name at least one, such as inception_v3")
    if arguments.ray_address is not None and arguments.workers is None:
        raise PlacetoError("--ray-address goes with workers; give --workers N, too")
    check_outputs(arguments.output, inputs=(*arguments.graph, arguments.cluster))
    folder = _folder(arguments.save)
    cluster = load_cluster(arguments.cluster)
    graphs = [load_graph(source) for source in dict.fromkeys(arguments.graph)]
    names = [graph.name for graph in graphs]
    for name in names:
        if names.count(name) > 1:
            raise PlacetoError(f"two graphs are called {name!r}; names must be unique")
    problems = [arguments.problem(graph, cluster) for graph in graphs]
    find = _one_by_one if arguments.workers is None else _at_once
    compared: list[tuple[Baseline, list[Placement]]] = []
    interrupted = False
    try:
        for problem, placements in find(problems, methods, arguments):
            base, found = baseline(problem), []
            compared.append((base, found))
            if base.infeasibility is not None:
                note(f"{problem.graph.name}: {base.infeasibility}")
            for placement in placements:
                found.append(placement)
                if folder is not None:
                    _save(placement, folder)
                if placement.interrupted:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
    rows = [
        placement_row(each, base, arguments.grouping) for base, found in compared for each in found
    ]
    document = {"rows": rows, "interrupted": interrupted}
    tables = [compare_table(found, base) for base, found in compared if found]
    print_rows(arguments.json, document, tables, arguments.output)
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


Found = Iterator[tuple[PlacementProblem, Iterator[Placement]]]


def _one_by_one(
    problems: Sequence[PlacementProblem], methods: Sequence[str], arguments: Compare
) -> Found:
    """Placements of each problem, as they are asked for."""

    def search(problem: PlacementProblem) -> Iterator[Placement]:
        for method in methods:
            found: Placement | NotApplicable
            with progress(f"{method} on {problem.graph.name}") as report:
                try:
                    found = place(problem, method, arguments.budget, arguments.seed, report)
                except NotApplicable as error:
                    found = error
            if _applies(found, method, arguments):
                yield found

    for problem in problems:
        yield problem, search(problem)


def _at_once(
    problems: Sequence[PlacementProblem], methods: Sequence[str], arguments: Compare
) -> Found:
    """Placements of each problem, when all are there; after Ctrl-C, those that are."""
    from placeto.placers.parallel import Search, place_all

    searches = [
        Search(problem, method, arguments.budget, arguments.seed)
        for problem in problems
        for method in methods
    ]
    found: dict[int, Placement] = {}
    interrupted = False
    assert arguments.workers is not None
    with progress(f"{len(searches)} searches") as report:
        over = place_all(searches, arguments.workers, arguments.ray_address, report)
        try:
            with closing(over):
                found.update(
                    (number, result)
                    for number, result in over
                    if _applies(result, searches[number].method, arguments)
                )
        except KeyboardInterrupt:
            interrupted = True
    for first, problem in zip(range(0, len(searches), len(methods)), problems, strict=True):
        numbers = range(first, first + len(methods))
        yield problem, (found[number] for number in numbers if number in found)
    if interrupted:
        raise KeyboardInterrupt


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
