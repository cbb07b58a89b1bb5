"""Floating-point operations and bytes of ONNX's ops."""

from collections.abc import Sequence
from math import prod

from onnx import NodeProto

Shape = tuple[int, ...]

# They pass on a buffer, or a few integers that are known before anything is computed.
FREE = frozenset(
    {"Dropout", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze"}
)
# They read as many rows of their first input as they put out.
ROWS = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
# Where an op's weights stand among its inputs.
_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "DeformConv": 1, "QLinearConv": 3}
_PRODUCTS = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul"})
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})


def flops(
    node: NodeProto, inputs: Sequence[Shape | None], outputs: Sequence[Shape | None]
) -> float:
    """Floating-point operations of a matrix product, a convolution, a recurrent layer or attention.

    A fused multiply-add counts as two; a bias is not counted. Of other ops 0. Of inputs and outputs
    the shape is given; None for one that is left out or of unknown shape.
    """
    first = inputs[0] if inputs else None
    result = outputs[0] if outputs else None
    kind = node.op_type
    at = _CONVOLUTIONS.get(kind, 1)
    weights = inputs[at] if at < len(inputs) else None
    if first is not None and kind in _RECURRENT:  # which of its outputs is wanted is all one
        recurrent = inputs[2]
        if weights is None or recurrent is None:
            return 0.0
        return 2.0 * first[0] * first[1] * (prod(weights) + prod(recurrent))
    if first is None or result is None:
        return 0.0
    if kind in _PRODUCTS:
        return 2.0 * prod(result) * first[-1]
    if kind == "Gemm":
        return 2.0 * prod(result) * first[0 if _attribute(node, "transA") else 1]
    if kind in _CONVOLUTIONS and weights is not None:
        return 2.0 * prod(result) * prod(weights[1:])
    if kind == "ConvTranspose" and weights is not None:
        return 2.0 * prod(first) * prod(weights[1:])
    if kind == "Attention":
        # With a cache, the keys are those of the output, of which this step's are a part.
        keys = outputs[1] if len(outputs) > 1 and outputs[1] is not None else weights
        return 0.0 if keys is None else 2.0 * keys[-2] * (prod(first) + prod(result))
    if kind == "Einsum":
        return _einsum(node, inputs)
    return 0.0


def _einsum(node: NodeProto, inputs: Sequence[Shape | None]) -> float:
    equation = _attribute(node, "equation").decode().replace(" ", "")  # type: ignore[union-attr]
    terms = equation.partition("->")[0].split(",")
    if len(terms) != 2 or None in inputs:
        return 0.0
    sizes: dict[str | int, int] = {}
    for term, shape in zip(terms, inputs, strict=True):
        head, dots, tail = term.partition("...")
        rest = len(shape or ()) - len(head + tail) if dots else 0
        # Dimensions in an ellipsis are aligned at their last one.
        letters = [*head, *range(-rest, 0), *tail]
        for letter, size in zip(letters, shape or (), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return 2.0 * prod(sizes.values())


def _attribute(node: NodeProto, name: str) -> int | bytes:
    found = next((each for each in node.attribute if each.name == name), None)
    if found is None:
        return 0
    return bytes(found.s) if found.s else int(found.i)
