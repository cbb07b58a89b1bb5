"""The way from a source to a graph with costs."""

from dataclasses import replace
from pathlib import Path

from placeto.extraction.quiet import import_tensorflow
from placeto.extraction.result import Extraction
from placeto.extraction.source import FORMS, Source, parse_source
from placeto.extraction.user_code import is_function, is_pytorch
from placeto.support.errors import PlacetoError
from placeto.support.progress import Progress, silent
from placeto.zoo.families import is_synthetic, parse_member
from placeto.zoo.folders import is_reference, member_meta


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
    if is_reference(source):
        member = parse_member(source)
        if is_synthetic(member.family):
            raise PlacetoError(
                f"{member.reference}: made up, not extracted; "
                "placeto.zoo.folders.synthetic_member makes it"
            )
        made = extract(member.source, optimize=optimize, progress=progress)
        meta = {**made.graph.meta, **member_meta(member)}
        return replace(made, graph=replace(made.graph, name=member.name, meta=meta))
    say = progress or silent
    parsed = parse_source(source)
    kind = _kind(parsed)
    if kind == "onnx":
        try:
            from placeto.extraction.onnx.source import extract_file
        except ModuleNotFoundError as error:
            raise PlacetoError(f"ONNX files need onnx ({error}); install placeto[onnx]") from error

        return extract_file(parsed, say)
    if kind == "module" and is_pytorch(parsed):
        from placeto.extraction.pytorch.source import extract_module

        say("loading PyTorch")
        return extract_module(parsed, say)
    say("loading TensorFlow")
    try:
        import_tensorflow()
    except PlacetoError as error:
        if kind != "module":
            raise
        hint = "a module is taken for PyTorch's if it imports torch"
        raise PlacetoError(f"{error}; {hint}") from error
    from placeto.extraction.assemble import extract_step

    return extract_step(parsed, kind, optimize, say)


def _kind(source: Source) -> str:
    path = Path(source.target)
    if source.scheme in ("keras", "zoo"):
        return source.scheme
    if is_function(source):
        return "module"
    if source.scheme:
        raise PlacetoError(f"source {source.text!r} is not known; give {FORMS}")
    if path.suffix == ".py":
        raise PlacetoError(f"source {source.text!r} names no function; give {path}:FUNCTION")
    if path.is_dir():
        return "savedmodel"
    if path.is_file():
        return "onnx" if path.suffix == ".onnx" else "graphdef"
    raise PlacetoError(f"source {source.text!r} is neither a file nor a directory; give {FORMS}")
