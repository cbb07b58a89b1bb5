"""Sizes and costs against figures worked out by hand and against published ones."""

from pathlib import Path

import numpy as np
import pytest

from placeto.extraction import Extraction, extract
from placeto.graph import ComputationGraph, load_graph
from tests.extraction.macs import forward_macs
from tests.extraction.running import STEPS

BATCH = 2


@pytest.fixture(scope="module")
def tiny() -> Extraction:
    return extract(f"{STEPS}:tiny?batch={BATCH}")


def row(graph: ComputationGraph, ending: str, op_type: str) -> int:
    """The op of a type whose name ends so, which must be one."""
    (found,) = (
        index
        for index, (name, kind) in enumerate(zip(graph.op_names, graph.op_types, strict=True))
        if kind == op_type and name.endswith(ending)
    )
    return found


def outputs(graph: ComputationGraph, op: int) -> list[int]:
    """Bytes of the tensors that an op produces, control dependencies left out."""
    sizes = graph.tensor_bytes[graph.tensor_producer == op]
    return sizes[sizes > 0].tolist()


def test_sizes_by_hand(tiny: Extraction) -> None:
    graph = tiny.graph
    convolution = row(graph, "conv_1/convolution", "Conv2D")
    # 8 x 8 x 3 -> 6 x 6 x 4 by 3 x 3 filters, then 144 -> 5.
    assert outputs(graph, row(graph, "image", "Placeholder")) == [BATCH * 8 * 8 * 3 * 4]
    assert outputs(graph, convolution) == [BATCH * 6 * 6 * 4 * 4]
    assert graph.flops[convolution] == 2 * BATCH * 6 * 6 * 4 * 3 * 3 * 3
    dense = row(graph, "dense_1/MatMul", "MatMul")
    assert outputs(graph, dense) == [BATCH * 5 * 4]
    assert graph.flops[dense] == 2 * BATCH * 144 * 5
    kernel_gradient = row(graph, "Conv2DBackpropFilter", "Conv2DBackpropFilter")
    assert graph.flops[kernel_gradient] == graph.flops[convolution]
    assert outputs(graph, kernel_gradient) == [3 * 3 * 3 * 4 * 4]
    assert "warnings" in graph.meta and graph.meta["warnings"] == []


def test_parameters_are_the_variables_and_their_slots(tiny: Extraction) -> None:
    graph = tiny.graph
    model = 3 * 3 * 3 * 4 + 144 * 5 + 5
    iteration = 8
    learning_rate = 4
    assert graph.param_bytes.sum() == 2 * 4 * model + iteration + learning_rate
    assert graph.param_bytes[graph.op_names.index("dense/kernel")] == 144 * 5 * 4


def test_seconds_are_work_over_peaks(tiny: Extraction) -> None:
    graph = tiny.graph
    op = row(graph, "dense_1/MatMul", "MatMul")
    moved = 4 * (BATCH * 144 + 144 * 5 + BATCH * 5)
    assert graph.op_seconds["v100"][op] == pytest.approx(
        2 * BATCH * 144 * 5 / (80 * 64 * 2 * 1.53e9) + moved / 900e9
    )


def test_updates_cost_what_they_move(tiny: Extraction) -> None:
    graph = tiny.graph
    key = graph.colocation[graph.op_names.index("dense/kernel")]
    bandwidth = 288e9
    for write in np.flatnonzero(graph.colocation == key):
        seconds = graph.op_seconds["k40"][write]
        if graph.op_types[write] == "AssignAddVariableOp":
            # Reads the variable and what is added, writes the variable; one addition each.
            assert seconds == pytest.approx(144 * 5 * (3 * 4 / bandwidth + 1 / 4.29e12), rel=1e-3)
        else:
            assert seconds == 0


def test_what_costs_nothing_costs_exactly_nothing(tiny: Extraction) -> None:
    free = {"Const", "Identity", "NoOp", "Placeholder", "VarHandleOp", "ReadVariableOp", "Reshape"}
    graph = tiny.graph
    for kind in graph.op_seconds:
        for op, op_type in enumerate(graph.op_types):
            assert (graph.op_seconds[kind][op] == 0) == (op_type in free), graph.op_names[op]


def test_ops_that_take_a_handle_share_its_key(tiny: Extraction) -> None:
    graph = tiny.graph
    variables = [op for op, kind in enumerate(graph.op_types) if kind == "VarHandleOp"]
    keys = graph.colocation[variables]
    assert sorted(keys.tolist()) == list(range(len(variables)))
    producer = graph.tensor_producer[graph.edge_tensor]
    for variable in variables:
        carries = graph.tensor_bytes[graph.edge_tensor] == 0
        takers = graph.edge_consumer[(producer == variable) & carries]
        assert len(takers) > 0
        assert (graph.colocation[takers] == graph.colocation[variable]).all()
    kinds = {graph.op_types[op] for op in np.flatnonzero(graph.colocation >= 0)}
    assert kinds == {"VarHandleOp", "ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp"}


def test_ops_stand_in_topological_order(tiny: Extraction) -> None:
    sources, targets = tiny.graph.op_edges
    assert (sources < targets).all()


def test_an_op_on_strings_needs_a_cpu() -> None:
    graph = extract(f"{STEPS}:spelling").graph
    op = graph.op_types.index("StringToHashBucketFast")
    assert np.isinf(graph.op_seconds["k80"][op])
    assert np.isfinite(graph.op_seconds["cpu"][op])
    assert "unknown size" in " ".join(graph.meta["warnings"])
    assert "not a training step" in " ".join(graph.meta["warnings"])


def test_folding_stores_no_large_constant() -> None:
    extraction = extract(f"{STEPS}:big_constant")
    assert extraction.graph_def.ByteSize() < 10_000
    assert extraction.graph.flops.sum() >= 4096 * 4096


# GMAC an image at the model's own size, as its paper or authors give it: He et al. 2015,
# arXiv:1512.03385, 3.8 (3.86 with Keras' biases and head); Sandler et al. 2018, arXiv:1801.04381,
# 0.300.
@pytest.mark.parametrize(
    ("model", "giga_macs", "parameters"),
    [("ResNet50", 3.86, 25_636_712), ("MobileNetV2", 0.300, 3_538_984)],
)
def test_forward_work_is_the_published_one(model: str, giga_macs: float, parameters: int) -> None:
    graph = extract(f"keras:{model}?batch={BATCH}&optimizer=sgd").graph
    assert forward_macs(graph) / BATCH == pytest.approx(giga_macs * 1e9, rel=0.015)
    # And the iteration counter and the learning rate of the optimizer.
    assert graph.param_bytes.sum() == 4 * parameters + 12


def test_inception_does_the_published_work() -> None:
    # Szegedy et al. 2015, arXiv:1512.00567: 5 billion multiply-adds; 5.7 at 299 x 299 as counted
    # by the authors' released model. A training step does about three times the forward work.
    graph = load_graph("inception_v3")
    assert forward_macs(graph) / 32 == pytest.approx(5.71e9, rel=0.01)
    assert graph.flops.sum() == pytest.approx(3 * 2 * 32 * 5.71e9, rel=0.02)
    assert graph.param_bytes.sum() == pytest.approx(4 * (23_851_784 + 23_817_352), rel=1e-6)
    assert 0.5 < graph.op_seconds["k80"].sum() < 1.2


def test_every_kind_has_its_figures_in_the_file(tiny: Extraction, tmp_path: Path) -> None:
    tiny.save(tmp_path / "tiny.json.gz")
    graph = load_graph(tmp_path / "tiny.json.gz")
    assert set(graph.meta["costs"]["kinds"]) == set(graph.op_seconds)
    assert graph.meta["kind"] == "vision"
    assert graph.meta["ops_traced"] > graph.meta["ops_placed"] == graph.num_ops
