"""ONNX files: ops, shapes, operations and bytes by hand, and beside those of PyTorch."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from placeto.extraction import extract
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.extraction.onnx.work import flops
from placeto.graph import ComputationGraph
from placeto.support.errors import PlacetoError

FLOAT = TensorProto.FLOAT


def save(path: Path, nodes: list[Any], inputs: dict[str, Any], outputs: list[str], **weights: Any):
    """A model of float32 inputs of the given shapes, and of weights given as arrays."""
    graph = helper.make_graph(
        nodes,
        "by hand",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    onnx.save(model, path)


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype=np.float32)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A strided convolution of two groups, a reshape, a product, all with an open batch."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", group=2, strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Reshape", ["r", "shape"], ["f"], "reshape"),
        helper.make_node("Gemm", ["f", "v"], ["y"], "gemm", transB=1),
    ]
    path = tmp_path / "small.onnx"
    save(
        path,
        nodes,
        {"x": ["batch", 4, 9, 9]},
        ["y"],
        w=zeros(6, 2, 3, 3),
        b=zeros(6),
        shape=np.array([0, -1]),
        v=zeros(5, 96),
    )
    return path


def column(graph: ComputationGraph, values: Any) -> dict[str, Any]:
    return dict(zip(graph.op_names, np.asarray(values).tolist(), strict=True))


def test_a_small_model_by_hand(small: Path) -> None:
    graph = extract(f"{small}?batch=2").graph
    assert graph.op_names == ("x", "conv", "relu", "reshape", "gemm")
    assert graph.op_types == ("Input", "Conv", "Relu", "Reshape", "Gemm")
    assert graph.name == "small"
    assert graph.meta["warnings"] == []
    result = 2 * 6 * 4 * 4
    convolution, product = 2 * result * (2 * 3 * 3), 2 * (2 * 5) * 96
    assert graph.flops.tolist() == [0, convolution, 0, 0, product]
    assert graph.param_bytes.tolist() == [0, 4 * (6 * 18 + 6), 0, 2 * 8, 4 * 5 * 96]
    assert graph.tensor_bytes.tolist() == [4 * 2 * 4 * 81, 4 * result, 4 * result, 4 * result, 40]
    assert graph.op_edges[0].tolist() == [0, 1, 2, 3]
    assert graph.op_edges[1].tolist() == [1, 2, 3, 4]
    moved = [0, 4 * (2 * 4 * 81 + 6 * 18 + 6 + result), 8 * result, 0, 4 * (result + 480 + 10)]
    for kind in DEVICE_KINDS:
        expected = np.maximum(
            graph.flops / kind.flops_per_second, np.array(moved) / kind.bytes_per_second
        )
        np.testing.assert_allclose(graph.op_seconds[kind.name], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("", r"'batch' of the inputs' dimensions has no size; give .*small\.onnx\?batch=32"),
        ("?bach=3", r"open dimension 'bach'; open dimensions: batch"),
        ("?batch=0", "batch=0 is not a whole number from 1"),
        ("?batch=1.5", "batch=1.5 is not a whole number from 1"),
    ],
)
def test_open_dimensions(small: Path, query: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint):
        extract(f"{small}{query}")


def test_shapes_in_a_file_of_their_own_are_read_and_weights_are_not(
    small: Path, tmp_path: Path
) -> None:
    model = onnx.load(small)
    path = tmp_path / "apart.onnx"
    onnx.save(model, path, save_as_external_data=True, location="apart.data", size_threshold=0)
    expected = extract(f"{small}?batch=2").graph
    graph = extract(f"{path}?batch=2").graph
    for name in ("flops", "param_bytes", "tensor_bytes"):
        assert getattr(graph, name).tolist() == getattr(expected, name).tolist()
    (tmp_path / "apart.data").unlink()
    graph = extract(f"{path}?batch=2").graph
    assert graph.param_bytes.tolist() == expected.param_bytes.tolist()
    assert graph.meta["warnings"] == ["2 outputs of unknown size, counted as 0 bytes: f, y"]


def test_a_weight_of_several_readers_is_memory_of_each(tmp_path: Path) -> None:
    path = tmp_path / "tied.onnx"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "same"),
        helper.make_node("MatMul", ["h", "w"], ["i"], "same"),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(zeros(4))),
        helper.make_node("Add", ["i", "c"], ["y"], "add"),
    ]
    save(path, nodes, {"x": [2, 4]}, ["y"], w=zeros(4, 4))
    graph = extract(str(path)).graph
    assert graph.op_names == ("x", "same", "same_1", "add")
    assert graph.param_bytes.tolist() == [0, 64, 64, 16]
    assert (graph.colocation == -1).all()


def test_branches_are_placed_as_a_whole(tmp_path: Path) -> None:
    def branch(name: str, width: int) -> Any:
        weight = numpy_helper.from_array(zeros(4, width), f"{name}w")
        back = numpy_helper.from_array(zeros(width, 4), f"{name}v")
        nodes = [
            helper.make_node("MatMul", ["x", f"{name}w"], [f"{name}h"]),
            helper.make_node("MatMul", [f"{name}h", f"{name}v"], [f"{name}y"]),
        ]
        output = helper.make_tensor_value_info(f"{name}y", FLOAT, [2, 4])
        return helper.make_graph(nodes, name, [], [output], [weight, back])

    path = tmp_path / "branches.onnx"
    nodes = [
        helper.make_node("Relu", ["i"], ["x"], "relu"),
        helper.make_node("ReduceMax", ["i"], ["m"], "max", keepdims=0),
        helper.make_node("Cast", ["m"], ["b"], "cast", to=TensorProto.BOOL),
        helper.make_node(
            "If", ["b"], ["y"], "if", then_branch=branch("t", 8), else_branch=branch("e", 3)
        ),
    ]
    save(path, nodes, {"i": [2, 4]}, ["y"])
    graph = extract(str(path)).graph
    assert column(graph, graph.flops)["if"] == 2 * (2 * 2 * 4 * 8)
    assert column(graph, graph.param_bytes)["if"] == 4 * 2 * (4 * 8 + 4 * 3)
    assert graph.meta["warnings"] == ["1 ops placed as a whole, what is inside counted once: if"]
    sources, targets = graph.op_edges
    # What only the branches read is read by the op that they are in.
    assert (1, 4) in zip(sources.tolist(), targets.tolist(), strict=True)


def test_ops_outside_of_the_standard(tmp_path: Path) -> None:
    path = tmp_path / "own.onnx"
    save(path, [helper.make_node("Own", ["x"], ["y"], "own", domain="mine")], {"x": [2, 4]}, ["y"])
    graph = extract(str(path)).graph
    assert graph.meta["warnings"] == [
        "1 outputs of unknown size, counted as 0 bytes: y",
        "ops outside of the standard, timed by their bytes alone: mine.Own",
    ]
    assert graph.op_seconds["k80"].tolist() == [0, 32 / 240e9]


def test_what_a_file_says_of_ops_outside_of_the_standard_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "own.onnx"
    nodes = [
        helper.make_node("Own", ["x"], ["h"], "own", domain="mine"),
        helper.make_node("MatMul", ["h", "w"], ["y"], "product"),
    ]
    save(path, nodes, {"x": ["n", 4]}, ["y"], w=zeros(5, 3))
    model = onnx.load(path)
    model.graph.value_info.append(helper.make_tensor_value_info("h", FLOAT, ["n", 5]))
    onnx.save(model, path)
    graph = extract(f"{path}?n=2").graph
    assert graph.tensor_bytes.tolist() == [4 * 2 * 4, 4 * 2 * 5, 4 * 2 * 3]
    assert graph.flops.tolist() == [0, 0, 2 * 2 * 5 * 3]


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "attributes", "expected"),
    [
        ("MatMul", [(3, 5, 7), (7, 2)], [(3, 5, 2)], {}, 2 * 3 * 5 * 7 * 2),
        ("Gemm", [(7, 5), (7, 2), (2,)], [(5, 2)], {"transA": 1}, 2 * 5 * 7 * 2),
        ("ConvTranspose", [(1, 4, 5, 5), (4, 3, 2, 2)], [(1, 3, 6, 6)], {}, 2 * 100 * 3 * 4),
        ("QLinearMatMul", [(5, 7), (), (), (7, 2)], [(5, 2)], {}, 2 * 5 * 7 * 2),
        # Four gates of width 3 read 5 inputs and 3 states, over 6 steps of 2 sequences.
        ("LSTM", [(6, 2, 5), (1, 12, 5), (1, 12, 3)], [(6, 1, 2, 3)], {}, 2 * 12 * 12 * (5 + 3)),
        ("LSTM", [(6, 2, 5), (1, 12, 5), (1, 12, 3)], [None, (1, 2, 3)], {}, 2 * 12 * 12 * 8),
        # 2 sequences, 3 heads, 4 queries and 5 keys of 8, values of 7.
        ("Attention", [(2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 7)], [(2, 3, 4, 7)], {},
         2 * 2 * 3 * 4 * 5 * (8 + 7)),
        ("Einsum", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], {"equation": "bij, bjk -> bik"},
         2 * 2 * 3 * 4 * 5),
        ("Einsum", [(2, 3, 4), (4, 5)], [(2, 3, 5)], {"equation": "...i,ij->...j"},
         2 * 2 * 3 * 4 * 5),
        ("Relu", [(3, 4)], [(3, 4)], {}, 0),
        ("MatMul", [None, (7, 2)], [(3, 2)], {}, 0),
    ],
)  # fmt: skip
def test_operations_by_hand(
    kind: str, inputs: Any, outputs: Any, attributes: Any, expected: int
) -> None:
    assert flops(helper.make_node(kind, [], [], **attributes), inputs, outputs) == expected


# PyTorch's exporter uses what PyTorch has deprecated.
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning")
@pytest.mark.parametrize("name", ["convolutions", "language"])
def test_a_model_that_pytorch_exports_has_the_operations_of_pytorch(
    tmp_path: Path, name: str
) -> None:
    import torch

    from tests.extraction.pytorch import models

    module, inputs = getattr(models, name)()
    path = tmp_path / f"{name}.onnx"
    torch.onnx.export(module.eval(), (inputs,), path, dynamo=True, verbose=False)
    found = extract(str(path)).graph
    wanted = extract(f"tests.extraction.pytorch.models:{name}?inference=true").graph
    assert found.flops.sum() == wanted.flops.sum() > 0
    assert found.meta["warnings"] == []
    weights = {name: tensor.nbytes for name, tensor in module.named_parameters()}
    held = sum(size for name, size in weights.items() if not name.startswith("unused"))
    # Batch norm becomes a part of the convolution before it; masks and shapes are constants.
    assert found.param_bytes.sum() == pytest.approx(held, rel=0.25)


def test_what_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("not a model")
    with pytest.raises(PlacetoError, match=r"text\.onnx: not an ONNX model"):
        extract(str(tmp_path / "text.onnx"))
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(PlacetoError, match=r"empty\.onnx: not an ONNX model, or one without ops"):
        extract(str(tmp_path / "empty.onnx"))
