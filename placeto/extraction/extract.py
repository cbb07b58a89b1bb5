"""The way from a source to a graph with costs."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.extraction.quiet import import_tensorflow
from placeto.extraction.result import Extraction
from placeto.extraction.source import FORMS, parse_source
from placeto.extraction.user_code import is_function, is_pytorch
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress
from placeto.zoo.families import is_synthetic, parse_member
from placeto.zoo.folders import is_reference, member_meta

if TYPE_CHECKING:
    from tensorflow.core.framework.graph_pb2 import GraphDef

    from placeto.extraction.source import Source
    from placeto.extraction.step import TrainingStep
    from placeto.zoo.families import Member

_CONVOLUTIONS = ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
_COSTS = (
    "Grappler's analytic model: operations / peak float32 FLOP/s + bytes moved / peak memory "
    "bandwidth, both from the data sheet; variable updates by passes over the variable's bytes"
)


def extract(source: str, *, optimize: bool = True, progress: Progress | None = None) -> Extraction:
    """Traces a training step and estimates what each of its ops costs on each device kind.

    Args:
        source: `keras:InceptionV3?batch=32` (any Keras Application), `zoo:nmt?layers=4`,
            `family:cifar10?number=7` (one graph of a family, under its own name),
            `package.module:function?key=value` or `file.py:function` (returns a traced
            tf.function, a Keras model, or a torch.nn.Module with its inputs), an ONNX file
            (`.onnx`; `?batch=32` for a dimension that it leaves open), a GraphDef file (`.pb`,
            `.pbtxt`, also `.gz`; `?fetch=name,name`) or a SavedModel directory
            (`?signature=serving_default`).
        optimize: of TensorFlow, fold constants with Grappler, so that the graph holds what would
            run; if not, functions are still inlined and what no result needs is dropped.
        progress: called with one line at each stage.

    Returns:
        The graph, and a GraphDef from which the same ops can be run, if it is of TensorFlow.

    Raises:
        PlacetoError: there is no such source, or no training step can be made of it.
    """
    from placeto.extraction.assemble import assemble
    from placeto.extraction.clean import cleaned
    from placeto.extraction.grappler import optimized
    from placeto.extraction.initializers import with_initializers
    from placeto.extraction.tracing import variables_kept

    if is_reference(source):
        return _member(parse_member(source), optimize, progress)
    say = progress or (lambda line: None)
    parsed = parse_source(source)
    loader = _loader(parsed)
    if loader == "onnx":
        from placeto.extraction.onnx.source import extract_file

        return extract_file(parsed, say)
    if loader == "module" and is_pytorch(parsed):
        from placeto.extraction.pytorch.source import extract_module

        say("loading PyTorch")
        return extract_module(parsed, say)
    say("loading TensorFlow")
    try:
        import_tensorflow()
    except PlacetoError as error:
        if loader != "module":
            raise
        raise PlacetoError(
            f"{error}; a module is taken for PyTorch's if it imports torch"
        ) from error
    say(f"tracing {source}")
    _start_afresh()
    with variables_kept():
        load = importlib.import_module(f"placeto.extraction.{loader}_source").load
        traced = cleaned(load(parsed))
    say(f"optimizing {len(traced.graph_def.node)} ops with Grappler")
    step = optimized(traced, fold=optimize)
    meta = _meta(parsed, traced, step, optimize)
    graph = assemble(step, meta, say)
    say(f"{graph.num_ops} ops, {graph.num_edges} edges")
    return Extraction(graph, with_initializers(step))


def _member(member: Member, optimize: bool, progress: Progress | None) -> Extraction:
    if is_synthetic(member.family):
        raise PlacetoError(
            f"{member.reference}: made up, not extracted; "
            "placeto.zoo.folders.synthetic_member makes it"
        )
    made = extract(member.source, optimize=optimize, progress=progress)
    meta = {**made.graph.meta, **member_meta(member)}
    return replace(made, graph=replace(made.graph, name=member.name, meta=meta))


def _start_afresh() -> None:
    import keras

    # Keras numbers layers and draws weights from where the process left off.
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)


def _loader(source: Source) -> str:
    path = Path(source.target)
    if source.scheme in ("keras", "zoo"):
        kind = source.scheme
    elif is_function(source):
        kind = "module"
    elif not source.scheme and path.suffix == ".py":
        raise PlacetoError(f"source {source.text!r} names no function; give {path}:FUNCTION")
    elif not source.scheme and path.is_dir():
        kind = "savedmodel"
    elif not source.scheme and path.is_file():
        kind = "onnx" if path.suffix == ".onnx" else "graphdef"
    else:
        found = "is not known" if source.scheme else "is neither a file nor a directory"
        raise PlacetoError(f"source {source.text!r} {found}; give {FORMS}")
    return kind


def _meta(
    source: Source, traced: TrainingStep, step: TrainingStep, optimize: bool
) -> dict[str, Any]:
    import keras
    import tensorflow as tf

    from placeto.extraction.initializers import INITIALIZER

    types = {node.op for node in step.graph_def.node}
    return {
        "source": source.text,
        "kind": "vision" if types.intersection(_CONVOLUTIONS) else "sequence",
        "versions": {"tensorflow": tf.__version__, "keras": keras.__version__},
        "optimized": optimize,
        "ops_traced": len(traced.graph_def.node),
        "ops_placed": len(step.graph_def.node),
        "costs": {
            "model": _COSTS,
            "temp_bytes": "as Grappler's analytic model reports it, which knows of none",
            "kinds": {kind.name: kind.document() for kind in DEVICE_KINDS},
        },
        "run": {
            "fetches": list(step.fetches),
            "targets": list(step.targets),
            "initializer": INITIALIZER,
            "inputs": _inputs(step.graph_def),
        },
        "warnings": list(step.warnings),
    }


def _inputs(graph_def: GraphDef) -> list[dict[str, Any]]:
    import tensorflow as tf

    return [
        {
            "name": node.name,
            "dtype": tf.as_dtype(node.attr["dtype"].type).name,
            "shape": [dim.size for dim in node.attr["shape"].shape.dim],
        }
        for node in graph_def.node
        if node.op == "Placeholder"
    ]
