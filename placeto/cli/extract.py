"""`placeto extract`."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from placeto.cli import INTERRUPTED
from placeto.cli.arguments import Json, Workers
from placeto.cli.output import check_outputs, note, print_json, progress
from placeto.cli.sources import check_graph_file, extracted
from placeto.support.errors import PlacetoError
from placeto.zoo.families import members, parse_family
from placeto.zoo.folders import cache_folder, graph_path, is_reference


@dataclass(frozen=True, kw_only=True)
class Extract:
    """Extracts a real training step, or an inference: its ops, their tensors, and what they cost.

    Attributes:
        source: `keras:InceptionV3?batch=32` (any Keras Application), `zoo:nmt?layers=4`,
            `my.module:make` or `file.py:make` (of TensorFlow, Keras or PyTorch), an ONNX file, a
            GraphDef file or a SavedModel folder; `family:cifar10` for all
            graphs of a family, `family:cifar10?number=7` for one.
        output: Graph file to write, .json or .json.gz; the runnable GraphDef is put beside it. Of
            a family, a folder, by default in the cache; what it has already is kept.
        name: What the graph is called, in tables and among those that are calibrated together; by
            default as its source.
        workers: Of a family, how many graphs to extract at a time; by default one a core.
        ray_address: Of a family, extract on a Ray cluster: its address, or auto.
    """

    source: Positional[str]
    output: Annotated[str | None, arg(aliases=["-o"], metavar="FILE|DIR")] = None
    name: str | None = None
    workers: Workers = None
    ray_address: Annotated[str | None, arg(metavar="auto|HOST:PORT")] = None
    json: Json = False


def run(arguments: Extract) -> int:
    """Extracts and writes the graph and its GraphDef, or those of a family."""
    if is_reference(arguments.source) and "?" not in arguments.source:
        return _family(arguments)
    options = {"--workers": arguments.workers, "--ray-address": arguments.ray_address}
    for option, value in options.items():
        if value is not None:
            raise PlacetoError(f"{option} goes with a whole family, such as family:cifar10")
    if arguments.output is None:
        raise PlacetoError(
            "missing from placeto extract: -o FILE, --output FILE; see placeto extract --help"
        )
    check_graph_file(arguments.output)
    check_outputs(arguments.output)
    extraction = extracted(arguments.source)
    if arguments.name is not None:
        extraction = replace(extraction, graph=replace(extraction.graph, name=arguments.name))
    graph, beside = extraction.graph, extraction.save(arguments.output)
    for warning in graph.meta.get("warnings", ()):
        note(f"warning: {warning}")
    if arguments.json:
        print_json(
            {
                "graph": graph.name,
                "source": arguments.source,
                "output": arguments.output,
                "graph_def": None if beside is None else str(beside),
                "ops": graph.num_ops,
                "tensors": graph.num_tensors,
                "edges": graph.num_edges,
                "param_bytes": int(graph.param_bytes.sum()),
                "flops": float(graph.flops.sum()),
                "warnings": list(graph.meta.get("warnings", ())),
            }
        )
    else:
        found = "" if beside is None else f", the GraphDef is in {beside}"
        note(f"{graph.num_ops} ops are in {arguments.output}{found}")
    return 0


def _family(arguments: Extract) -> int:
    if arguments.name is not None:
        raise PlacetoError("--name goes with one graph; those of a family have names")
    from placeto.extraction.families import ExtractAll, make_family

    family = parse_family(arguments.source)
    if arguments.output == "":
        raise PlacetoError("-o '': expected a folder; leave it out for the cache")
    folder = cache_folder(family) if arguments.output is None else Path(arguments.output)
    extract_all: ExtractAll | None = None
    if arguments.ray_address is not None:
        from placeto.extraction.workers import extract_members_with_ray

        extract_all = partial(extract_members_with_ray, address=arguments.ray_address)
    try:
        with progress("extract", interval_seconds=0) as report:
            made = make_family(family, folder, arguments.workers, report, extract_all)
    except KeyboardInterrupt:
        note(f"interrupted; the same command goes on with what {folder} does not hold yet")
        return INTERRUPTED
    if arguments.json:
        rows = [
            {**asdict(member), "file": str(graph_path(folder, member))}
            for member in members(family)
        ]
        document = {"family": family, "output": str(folder), "made": made, "members": rows}
        print_json(document)
    note(f"{made} graphs made; all {len(members(family))} of family:{family} are in {folder}")
    return 0
