"""Training steps that a command extracts itself, as `placeto extract` does."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from placeto.cli.arguments import ProblemArguments
from placeto.cli.output import note, progress
from placeto.cluster import Cluster
from placeto.extraction import Extraction
from placeto.extraction.device_kinds import estimated
from placeto.extraction.source import Source, parse_source
from placeto.extraction.user_code import is_function, is_pytorch
from placeto.graph import ComputationGraph
from placeto.placement.accelerators import accelerators
from placeto.placers.microbatches import Tries, try_microbatches, try_pipelines
from placeto.problem import PlacementProblem
from placeto.reports.microbatches import tries_table, try_rows
from placeto.simulation.stages import PipelineSchedule
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress
from placeto.support.streams import redirected
from placeto.zoo.families import is_synthetic, parse_member
from placeto.zoo.folders import is_reference, synthetic_member


def is_source(graph: str) -> bool:
    """Whether what is given for a graph has to be extracted, such as `zoo:nmt?layers=4`."""
    return ":" in graph and not os.path.exists(graph)


def torch_source(text: str) -> Source:
    """A source that is a function of PyTorch's.

    Raises:
        PlacetoError: it is none.
    """
    source = parse_source(text)
    if not is_function(source) or not is_pytorch(source):
        raise PlacetoError(
            f"{text}: is no function of a module that imports torch; give net.py:make or "
            "package.module:make"
        )
    return source


def check_graph_file(path: str) -> None:
    """Raises `PlacetoError` unless a graph file may be called so."""
    if not path.endswith((".json", ".json.gz")):
        raise PlacetoError(f"{path}: a graph file's name ends in .json or .json.gz")


@contextlib.contextmanager
def extracting(label: str, interval_seconds: float = 5.0) -> Iterator[Progress]:
    """Yields what `progress` yields, while code runs that may print what is no output of ours.

    That is TensorFlow's runtime, and a user's module.
    """
    with (
        redirected(1, to=2),
        contextlib.redirect_stdout(sys.stderr),
        progress(label, interval_seconds) as report,
    ):
        yield report


def extracted(source: str) -> Extraction:
    """What a source gives; tells of every stage, of which there are few."""
    if is_reference(source) and is_synthetic((member := parse_member(source)).family):
        return Extraction(synthetic_member(member), None)
    from placeto.extraction import extract

    with extracting("extract", interval_seconds=0) as report:
        return extract(source, progress=report)


def saved(extraction: Extraction, path: str | None) -> ComputationGraph:
    """The graph, saved if a file is named; says what there is to warn of."""
    for warning in extraction.graph.meta.get("warnings", ()):
        note(f"warning: {warning}")
    if path is not None:
        extraction.save(path)
        note(f"the graph is in {path}")
    return extraction.graph


def tell_of_estimates(graph: ComputationGraph, cluster: Cluster) -> None:
    """Says so if a PyTorch module's op times on the cluster are made of figures of data sheets."""
    if kinds := estimated(graph.meta, accelerators(cluster).kinds):
        note(
            f"op times of {graph.name} on {', '.join(kinds)} are estimates; placeto calibrate "
            "--torch measures them"
        )


def tried(
    source: str,
    problem: ProblemArguments,
    cluster: Cluster,
    method: str,
    budget_seconds: float,
    seed: int,
    settings: Mapping[str, object],
) -> Tries:
    """See `try_microbatches`; what was found is on stderr."""

    def made(graph: ComputationGraph) -> PlacementProblem:
        # Orders of microbatches are none of a step of one.
        alone = graph.num_microbatches == 1
        return (replace(problem, order=None) if alone else problem).problem(graph, cluster)

    with extracting("microbatches") as report:
        tries = try_microbatches(source, made, method, budget_seconds, seed, report, settings)
    return _told(tries)


def tried_pipelines(source: str, cluster: Cluster, schedule: PipelineSchedule | None) -> Tries:
    """See `try_pipelines`; what was found is on stderr."""
    with extracting("microbatches") as report:
        return _told(try_pipelines(source, cluster, schedule, report))


def _told(tries: Tries) -> Tries:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(tries_table(try_rows(tries), tries.stopped))
    return tries
