"""An ONNX model with every shape known, and the bytes of its tensors."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path

import onnx
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto
from onnx.checker import ValidationError
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from placeto.extraction.source import Source, unknown
from placeto.support.errors import PlacetoError

STANDARD = ("", "ai.onnx")
# A shape, unlike a weight, is at most so many integers.
_SHAPE_ELEMENTS = 1024
# Types of which several elements are in one byte.
_IN_A_BYTE = {"INT4": 2, "UINT4": 2, "FLOAT4E2M1": 2, "INT2": 4, "UINT2": 4}


@dataclass(frozen=True)
class Tensor:
    """What is known of a tensor; it has no bytes if its shape is not known."""

    shape: tuple[int, ...] | None
    bytes: int


UNKNOWN = Tensor(None, 0)


def load_model(source: Source) -> ModelProto:
    """Reads a model, gives its open dimensions the sizes that the source has, and infers shapes.

    Weights that stand in files of their own are not read; what may be a shape is, if it is there.

    Raises:
        PlacetoError: the file is no ONNX model, or a dimension of an input has no size.
    """
    path = Path(source.target)
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, OSError) as error:
        raise PlacetoError(f"{path}: not an ONNX model ({error})") from error
    if not model.graph.node:
        raise PlacetoError(f"{path}: not an ONNX model, or one without ops")
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    _load_shapes(model.graph, path.parent)
    _set_dimensions(model.graph, source)
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        line = str(error).strip().splitlines()[0]
        raise PlacetoError(f"{source.text}: shapes cannot be inferred: {line}") from error


def tensors(graph: GraphProto) -> dict[str, Tensor]:
    """Every tensor of a graph whose type is known, by name; states among them."""
    found = states(graph)
    for info in (*graph.input, *graph.value_info, *graph.output):
        if info.name not in found:
            found[info.name] = _tensor(info.type)
    return found


def states(graph: GraphProto) -> dict[str, Tensor]:
    """The constants of a graph: initializers and `Constant` ops, by name."""
    found = {each.name: _sized(each.data_type, each.dims) for each in graph.initializer}
    for sparse in graph.sparse_initializer:
        parts = [_sized(part.data_type, part.dims) for part in (sparse.values, sparse.indices)]
        found[sparse.values.name] = Tensor(tuple(sparse.dims), sum(part.bytes for part in parts))
    infos = {info.name: info for info in (*graph.value_info, *graph.output)}
    for node in graph.node:
        if node.op_type == "Constant" and not node.input:
            name = node.output[0]
            held = next((each.t for each in node.attribute if each.HasField("t")), None)
            if held is not None:
                found[name] = _sized(held.data_type, held.dims)
            else:
                found[name] = _tensor(infos[name].type) if name in infos else UNKNOWN
    return found


def _load_shapes(graph: GraphProto, folder: Path) -> None:
    for tensor in graph.initializer:
        whole = tensor.data_type in (TensorProto.INT64, TensorProto.INT32)
        if whole and prod(tensor.dims) <= _SHAPE_ELEMENTS and uses_external_data(tensor):
            with contextlib.suppress(OSError, ValueError, ValidationError):
                load_external_data_for_tensor(tensor, str(folder))
                tensor.data_location = TensorProto.DEFAULT
                del tensor.external_data[:]


def _set_dimensions(graph: GraphProto, source: Source) -> None:
    held = {initializer.name for initializer in graph.initializer}
    inputs = [info for info in graph.input if info.name not in held]
    names = dict.fromkeys(name for info in inputs for name, _ in _open_dimensions(info))
    for key, value in source.options.items():
        if key not in names:
            said = f"no input has an open dimension {key!r}"
            raise unknown(source.text, said, "open dimensions", names)
        if type(value) is not int or value < 1:
            raise PlacetoError(f"{source.text}: {key}={value} is not a whole number from 1")
    if missing := [name for name in names if name not in source.options]:
        example = "&".join(f"{name}=32" for name in names)
        raise PlacetoError(
            f"{source.text}: {', '.join(map(repr, missing))} of the inputs' dimensions "
            f"{'has' if len(missing) == 1 else 'have'} no size; give "
            f"{source.target}?{example}"
        )
    # What an exporter wrote down was inferred with open dimensions; of ops outside of the standard
    # nothing else is known.
    foreign = {name for node in graph.node if node.domain not in STANDARD for name in node.output}
    for at in reversed(range(len(graph.value_info))):
        if graph.value_info[at].name not in foreign:
            del graph.value_info[at]
    for info in graph.output:
        if info.name not in foreign:
            info.type.tensor_type.ClearField("shape")
    for info in (*inputs, *graph.value_info, *graph.output):
        for name, dim in _open_dimensions(info):
            if name in source.options:
                dim.dim_value = int(source.options[name])


def _open_dimensions(info: ValueInfoProto) -> list[tuple[str, TensorShapeProto.Dimension]]:
    """The dimensions without a size, by name; one without a name is `INPUT.AXIS`."""
    return [
        (dim.dim_param or f"{info.name}.{axis}", dim)
        for axis, dim in enumerate(info.type.tensor_type.shape.dim)
        if not dim.HasField("dim_value") or dim.dim_value < 0
    ]


def _tensor(kind: TypeProto) -> Tensor:
    held = kind.tensor_type
    if not kind.HasField("tensor_type") or not held.HasField("shape"):
        return UNKNOWN
    if not all(dim.HasField("dim_value") for dim in held.shape.dim):
        return UNKNOWN
    return _sized(held.elem_type, [dim.dim_value for dim in held.shape.dim])


def _sized(element: int, dims: Iterable[int]) -> Tensor:
    shape = tuple(dims)
    name = TensorProto.DataType.Name(element)
    if name in ("UNDEFINED", "STRING"):
        return Tensor(shape, 0)
    size = onnx.helper.tensor_dtype_to_np_dtype(element).itemsize
    return Tensor(shape, ceil(prod(shape) * size / _IN_A_BYTE.get(name, 1)))
