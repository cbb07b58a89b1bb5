"""`placeto compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from tyro.conf import Positional, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import OutputFile, ProblemArguments
from placeto.cli.output import check_outputs, finite, note, print_json, print_rich
from placeto.cli.progress import progress
from placeto.errors import PlacetoError
from placeto.files import write_json
from placeto.graph import load_graph
from placeto.placement import Placement
from placeto.placers import PLACERS, NotApplicable, place
from placeto.placers.registry import find_placer
from placeto.problem import PlacementProblem
from placeto.reports.rows import Baseline, Row, baseline, placement_row
from placeto.reports.tables import compare_table
from placeto.simulation import save_timeline, simulate


@dataclass(frozen=True, kw_only=True)
class Compare(ProblemArguments):
    """Compares placers on the same graphs and the same cluster, in one table a graph.

    Attributes:
        graph: Bundled graphs (see `placeto list`) or graph files.
        methods: Placers with commas between them; by default all that apply to the cluster.
        budget: Seconds of search or training of each placement.
        seed: Where the placers' random numbers start.
        output: File to write the JSON document to as well.
        save: Folder for every placement (GRAPH.METHOD.json) and its timeline for
            ui.perfetto.dev (GRAPH.METHOD.timeline.json.gz).
        json: Print one JSON document instead of tables.
    """

    graph: Positional[tuple[str, ...]]
    methods: Annotated[str | None, arg(metavar="A,B,…")] = None
    budget: float = 30.0
    seed: int = 0
    output: OutputFile = None
    save: Annotated[str | None, arg(metavar="DIR")] = None
    json: bool = False


def run(arguments: Compare) -> int:
    """Runs every placer on every graph; prints and writes what was found until Ctrl-C."""
    methods = _methods(arguments.methods)
    if not arguments.graph:
        raise PlacetoError("compare: no graph; name at least one, such as inception_v3")
    check_outputs(arguments.output, inputs=(*arguments.graph, arguments.cluster))
    folder = _folder(arguments.save)
    cluster = arguments.load_cluster()
    graphs = [load_graph(source) for source in arguments.graph]
    problems = [arguments.problem(graph, cluster) for graph in graphs]
    tables: list[list[Row]] = []
    interrupted = False
    for problem in problems:
        rows: list[Row] = []
        tables.append(rows)
        try:
            base = baseline(problem)
            if base.infeasibility is not None:
                note(f"{problem.graph.name}: {base.infeasibility}")
            for method in methods:
                placement = _placement(problem, method, arguments, base)
                if placement is not None:
                    rows.append(placement_row(placement, base, arguments.grouping))
                    if folder is not None:
                        _save(placement, folder)
                    if placement.interrupted:
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            interrupted = True
            break
    document = {"rows": [row for rows in tables for row in rows], "interrupted": interrupted}
    if arguments.output is not None:
        write_json(arguments.output, finite(document))
    if arguments.json:
        print_json(document)
    else:
        print_rich(*(compare_table(rows) for rows in tables if rows))
    if arguments.output is not None:
        note(f"the rows are in {arguments.output}")
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


def _methods(text: str | None) -> list[str]:
    names = list(PLACERS) if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        find_placer(name)
    return list(dict.fromkeys(names))


def _placement(
    problem: PlacementProblem, method: str, arguments: Compare, base: Baseline
) -> Placement | None:
    """A placer's placement; None where it does not apply and was not asked for by name."""
    with progress(f"{method} on {problem.graph.name}") as report:
        try:
            return place(problem, method, arguments.budget, arguments.seed, report)
        except NotApplicable as error:
            if arguments.methods is not None:
                raise
            reason = str(error)
    note(f"{method} is left out: {reason}")
    return None
