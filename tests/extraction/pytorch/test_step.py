"""A two-layer network's training step by hand, and graphs that are run against autograd."""

import resource
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

import placeto
from placeto.extraction import extract
from placeto.extraction.device_kinds import DEVICE_KINDS
from placeto.extraction.pytorch.capture import capture
from placeto.extraction.pytorch.inputs import make_call
from placeto.extraction.pytorch.work import moved_bytes
from placeto.graph import ComputationGraph
from tests.extraction.pytorch import models
from tests.extraction.pytorch.replay import drawn_step, loss_of, replayed

MODELS = "tests.extraction.pytorch.models"
FORWARD = ["0/addmm", "1/relu", "2/addmm_1", "loss/_log_softmax", "loss/nll_loss_forward"]


@pytest.fixture(scope="module")
def mlp() -> ComputationGraph:
    return extract(f"{MODELS}:mlp?optimizer=adam").graph


def column(graph: ComputationGraph, values: Any) -> dict[str, Any]:
    return dict(zip(graph.op_names, np.asarray(values).tolist(), strict=True))


def test_ops_of_two_layers(mlp: ComputationGraph) -> None:
    states = ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert sorted(mlp.op_names) == sorted(
        [
            *states,
            *(f"{state}/adam" for state in states),
            *("args_0", "targets_0"),
            *FORWARD,
            "gradients/loss/nll_loss_forward/nll_loss_backward",
            "gradients/loss/_log_softmax/_log_softmax_backward_data",
            # Of the second layer: what it passes back, its weight's, its bias'.
            *(f"gradients/2/addmm_1/{op}" for op in ("mm", "mm_1", "sum_1")),
            "gradients/1/relu/threshold_backward",
            # Nothing is passed back to the input.
            *(f"gradients/0/addmm/{op}" for op in ("mm_2", "sum_2")),
        ]
    )
    assert mlp.meta["warnings"] == []
    assert mlp.num_ops == 23


def test_operations_of_two_layers(mlp: ComputationGraph) -> None:
    flops = {name: count for name, count in column(mlp, mlp.flops).items() if count}
    first, second = 2 * 8 * 4 * 6, 2 * 8 * 6 * 3
    assert flops == {
        "0/addmm": first,
        "2/addmm_1": second,
        "gradients/2/addmm_1/mm": second,
        "gradients/2/addmm_1/mm_1": second,
        "gradients/0/addmm/mm_2": first,
    }


def test_state_of_two_layers(mlp: ComputationGraph) -> None:
    held = {name: size for name, size in column(mlp, mlp.param_bytes).items() if size}
    sizes = {"0.weight": 4 * 24, "0.bias": 4 * 6, "2.weight": 4 * 18, "2.bias": 4 * 3}
    # Adam keeps two averages of each gradient.
    assert held == sizes | {f"{name}/adam": 2 * size for name, size in sizes.items()}


def test_tensors_of_two_layers(mlp: ComputationGraph) -> None:
    made: dict[str, list[int]] = {name: [] for name in mlp.op_names}
    for producer, size in zip(mlp.tensor_producer, mlp.tensor_bytes.tolist(), strict=True):
        made[mlp.op_names[producer]].append(size)
    hidden, scores, weights = 4 * 8 * 6, 4 * 8 * 3, {"0": (96, 24), "2": (72, 12)}
    assert made["args_0"] == [4 * 8 * 4]
    assert made["targets_0"] == [8 * 8]
    assert made["0/addmm"] == made["1/relu"] == made["gradients/2/addmm_1/mm"] == [hidden]
    assert made["2/addmm_1"] == made["loss/_log_softmax"] == [scores]
    assert made["loss/nll_loss_forward"] == [4, 4]  # the loss, and the weights' sum
    assert made["gradients/2/addmm_1/mm_1"] == [weights["2"][0]]
    # The last gradient: the optimizer waits for it, whatever it updates.
    assert made["gradients/0/addmm/sum_2"] == [weights["0"][1], 0]
    # A parameter is where its readers are, as `param_bytes`; nothing is sent.
    assert made["0.weight"] == [0]


def test_seconds_are_on_the_roofline(mlp: ComputationGraph) -> None:
    moved = {
        "0.weight": 0,
        "args_0": 0,
        "0/addmm": 4 * (8 * 4 + 4 * 6 + 6 + 8 * 6),
        "1/relu": 4 * 2 * 8 * 6,
        "gradients/2/addmm_1/mm": 4 * (8 * 3 + 3 * 6 + 8 * 6),
        "0.weight/adam": 7 * 96,
    }
    for kind in DEVICE_KINDS:
        seconds = column(mlp, mlp.op_seconds[kind.name])
        for name, size in moved.items():
            operations = column(mlp, mlp.flops)[name]
            expected = max(operations / kind.flops_per_second, size / kind.bytes_per_second)
            assert seconds[name] == pytest.approx(expected, rel=1e-12)


def test_edges_of_two_layers(mlp: ComputationGraph) -> None:
    sources, targets = mlp.op_edges
    names = np.array(mlp.op_names)
    edges = set(zip(names[sources].tolist(), names[targets].tolist(), strict=True))
    backward = {
        ("2/addmm_1", "loss/_log_softmax"),
        ("gradients/loss/_log_softmax/_log_softmax_backward_data", "gradients/2/addmm_1/mm"),
        ("2.weight", "gradients/2/addmm_1/mm"),
        ("1/relu", "gradients/2/addmm_1/mm_1"),
        ("gradients/2/addmm_1/mm", "gradients/1/relu/threshold_backward"),
        ("args_0", "gradients/0/addmm/mm_2"),
        ("gradients/0/addmm/mm_2", "0.weight/adam"),
        ("0.weight", "0.weight/adam"),
    }
    assert backward <= edges
    assert ("0.weight", "gradients/0/addmm/mm_2") not in edges


def test_convolutions_by_hand() -> None:
    graph = extract(f"{MODELS}:convolutions").graph
    by_type = dict(zip(graph.op_names, graph.flops.tolist(), strict=True))
    image = 2 * (2 * 8 * 8 * 8) * (3 * 3 * 3)
    depthwise = 2 * (2 * 8 * 1 * 1) * (1 * 3 * 3)
    assert by_type["conv/convolution"] == image
    # Only the weight's gradient: the image needs none.
    assert by_type["gradients/conv/convolution/convolution_backward_1"] == image
    assert by_type["depthwise/convolution_1"] == depthwise
    assert by_type["gradients/depthwise/convolution_1/convolution_backward"] == 2 * depthwise
    assert graph.meta["kind"] == "vision"


def test_a_bag_reads_the_rows_that_it_sums_up() -> None:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    call, _ = make_call(models.bag, "", mode, "here")
    captured = capture(call, mode, training=False, loss="auto", where="here")
    (bag,) = (node for node in captured.graph.nodes if "_embedding_bag" in str(node.target))
    # 12 rows of 16 floats, 4 sums; numbers: 12 of rows, 4 of where a bag begins, and what it notes.
    rows = (12 + 4) * 16 * 4
    assert rows < moved_bytes(bag) < 2 * rows


def test_a_parameter_that_is_a_term_of_the_loss_is_updated() -> None:
    graph = extract(f"{MODELS}:offset?loss=auto").graph
    assert "bias/momentum" in graph.op_names
    update = graph.op_names.index("bias/momentum")
    sources, targets = graph.op_edges
    assert graph.op_names.index("bias") in sources[targets == update]


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (models.mlp, "crossentropy"),
        (models.convolutions, "mse"),
        (lambda: models.language(layers=1, tied=True), "crossentropy"),
        (models.with_loss, "auto"),
        (models.shifted, "mse"),
    ],
)
def test_the_graph_computes_what_autograd_does(make: Any, loss: str) -> None:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    call, _ = make_call(make, "", mode, "here")
    captured = capture(call, mode, training=True, loss=loss, where="here")
    module, inputs, given, state = drawn_step(make, loss)
    expected = loss_of(module, inputs, given, loss)
    expected.backward()  # type: ignore[no-untyped-call]

    found, gradients, buffers = replayed(captured, state, given)
    torch.testing.assert_close(found, expected.detach())
    parameters = dict(module.named_parameters(remove_duplicate=False))
    assert gradients
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, parameters[name].grad)
    without = {name for name, each in parameters.items() if each.grad is None}
    held = {id(parameters[name]) for name in gradients}
    assert without == {name for name, each in parameters.items() if id(each) not in held}
    after = module.state_dict()
    changed = {name for name, value in state.items() if not torch.equal(value, after[name])}
    assert changed == buffers.keys()
    for name, value in buffers.items():
        torch.testing.assert_close(value, after[name])


@pytest.mark.parametrize("tied", ["false", "true"])
def test_a_module_on_meta_is_as_any_other(tied: str) -> None:
    found = extract(f"{MODELS}:on_meta?tied={tied}&loss=crossentropy").graph
    expected = extract(f"{MODELS}:language?layers=1&tied={tied}&loss=crossentropy").graph
    assert found.op_names == expected.op_names
    assert found.op_names.count("words.weight/momentum") == 1
    assert column(found, found.param_bytes) == column(expected, expected.param_bytes)
    assert column(found, found.flops) == column(expected, expected.flops)


def test_backward_ops_without_a_forward_op_are_of_its_module() -> None:
    graph = extract(f"{MODELS}:shifted").graph
    module = dict(zip(graph.op_names, graph.meta["pytorch"]["modules"], strict=True))
    backward = [name for name in graph.op_names if name.startswith("gradients/")]
    forward = {name: name.removeprefix("gradients/").rpartition("/")[0] for name in backward}
    without = [name for name in backward if forward[name] not in module]
    assert without  # else this module is no example
    assert {module[name] for name in without} == {"0"}
    assert all(name.startswith("gradients/0/") for name in without)


def test_layers_that_are_copies_of_one() -> None:
    graph = extract(f"{MODELS}:copied").graph
    weights = [name for name in graph.op_names if name.endswith("linear1.weight")]
    assert weights == [f"layers.{number}.linear1.weight" for number in range(2)]
    assert graph.param_bytes[graph.op_names.index(weights[1])] == 4 * 8 * 16


def test_operations_of_a_recurrent_layer() -> None:
    graph = extract(f"{MODELS}:recurrent").graph
    # Four gates of 3 read 5 inputs and 3 states, over 6 steps of 2 sequences.
    forward = 2 * (6 * 2) * (4 * 3) * (5 + 3)
    flops = {kind: count for kind, count in zip(graph.op_types, graph.flops, strict=True) if count}
    assert flops == {"mkldnn_rnn_layer": forward, "mkldnn_rnn_layer_backward": 2 * forward}


def test_no_weights_are_made() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = extract(f"{MODELS}:large?optimizer=sgd").graph
    assert graph.param_bytes.sum() == 10 * 4 * (31623 * 31623 + 31623) > 40e9
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 1e9


def test_gradients_are_grouped_with_their_forward_ops() -> None:
    graph = extract(f"{MODELS}:mlp?together=parameters").graph
    problem = placeto.PlacementProblem(graph, placeto.load_cluster("k80x2"), "papers")
    group = column(graph, problem.op_group)
    assert group["gradients/0/addmm/mm_2"] == group["0/addmm"] == group["0.weight/momentum"]
