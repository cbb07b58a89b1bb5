"""`placeto extract`."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from placeto.cli.output import check_outputs, note, print_json
from placeto.cli.progress import progress
from placeto.errors import PlacetoError

SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True, kw_only=True)
class Extract:
    """Extracts a real training step: its ops, their tensors, and what they cost.

    Attributes:
        source: `keras:InceptionV3?batch=32` (any Keras Application), `zoo:nmt?layers=4`,
            `my.module:make_step`, a GraphDef file or a SavedModel folder.
        output: Graph file to write, .json or .json.gz; the runnable GraphDef is put beside it.
        json: Print one JSON document instead of text.
    """

    source: Positional[str]
    output: Annotated[str, arg(aliases=["-o"], metavar="FILE")]
    json: bool = False


def run(arguments: Extract) -> int:
    """Extracts and writes the graph and its GraphDef."""
    if not arguments.output.endswith(SUFFIXES):
        raise PlacetoError(f"{arguments.output}: a graph file's name ends in .json or .json.gz")
    check_outputs(arguments.output)
    from placeto.extraction import extract

    # Every stage of an extraction is worth a line; there are few.
    with _stdout_to_stderr(), progress("extract", interval_seconds=0) as report:
        extraction = extract(arguments.source, progress=report)
        beside = extraction.save(arguments.output)
    graph = extraction.graph
    for warning in graph.meta.get("warnings", ()):
        note(f"warning: {warning}")
    if arguments.json:
        print_json(
            {
                "graph": graph.name,
                "source": arguments.source,
                "output": arguments.output,
                "graph_def": str(beside),
                "ops": graph.num_ops,
                "tensors": graph.num_tensors,
                "edges": graph.num_edges,
                "param_bytes": int(graph.param_bytes.sum()),
                "flops": float(graph.flops.sum()),
                "warnings": list(graph.meta.get("warnings", ())),
            }
        )
    else:
        note(f"{graph.num_ops} ops are in {arguments.output}, the GraphDef is in {beside}")
    return 0


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """What TensorFlow's runtime and a user's module print is not the command's output."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
