from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from placeto import Channel, Cluster, Device, PlacementProblem, load_graph, place
from placeto.cluster import load_cluster
from tests.builders import make_cluster, make_graph


def chain(seconds, **meta):
    names = list(seconds)
    tensors = [(name, 1, [after]) for name, after in pairwise(names)]
    return replace(make_graph(seconds, tensors), meta=meta)


def devices_by_op(graph, cluster, **pins):
    problem = PlacementProblem(graph, cluster, "none")
    numbers = {graph.op_names.index(name): device for name, device in pins.items()}
    placement = place(PlacementProblem(graph, cluster, "none", pins=numbers), "expert")
    assert problem.num_groups == graph.num_ops
    return dict(zip(graph.op_names, placement.devices.tolist(), strict=True))


def test_vision_models_are_cut_into_blocks_of_equal_time():
    graph = chain({f"conv{op}": 1.0 for op in range(8)}, kind="vision")
    assert list(devices_by_op(graph, make_cluster(4)).values()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_blocks_are_of_equal_time_not_of_equal_count():
    graph = chain({"stem": 6.0, "a": 2.0, "b": 2.0, "c": 1.0, "d": 1.0}, kind="vision")
    assert list(devices_by_op(graph, make_cluster(2)).values()) == [0, 1, 1, 1, 1]


def test_blocks_follow_the_order_of_the_graph_not_of_the_file():
    graph = make_graph(
        {"d": 1.0, "b": 1.0, "c": 1.0, "a": 1.0},
        [("a", 1, ["b"]), ("b", 1, ["c"]), ("c", 1, ["d"])],
    )
    assert devices_by_op(graph, make_cluster(2)) == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_sequence_models_get_a_layer_a_device_and_the_rest_on_the_last():
    graph = chain(
        {
            "embedding/source/Gather": 1.0,
            "encoder/layer_0/step_0/MatMul": 1.0,
            "encoder/layer_1/step_0/MatMul": 1.0,
            "decoder/layer_0/step_0/MatMul": 1.0,
            "decoder/layer_1/step_0/MatMul": 1.0,
            "attention/step_0/Softmax": 1.0,
            "softmax/loss": 1.0,
            "gradient_tape/decoder/layer_1/step_0/MatMul": 1.0,
            "update/encoder/layer_1/kernel/ResourceApplyGradientDescent": 1.0,
        },
        kind="sequence",
    )
    assert list(devices_by_op(graph, make_cluster(4)).values()) == [0, 0, 1, 0, 1, 3, 3, 1, 1]


def test_sequence_models_without_layers_are_cut_into_blocks():
    graph = chain({f"dense_{op}/MatMul": 1.0 for op in range(4)}, kind="sequence")
    assert list(devices_by_op(graph, make_cluster(2)).values()) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "names",
    [
        ["lstm/MatMul", "lstm_1/MatMul", "lstm_2/MatMul"],  # as Keras counts
        ["lstm_1/MatMul", "lstm_1_2/MatMul", "lstm_2_1/MatMul"],
        ["rnn/layer_1/MatMul", "rnn/layer_2/MatMul", "rnn/layer_10/MatMul"],
        ["model/gru0/MatMul", "model/gru1/MatMul", "model/gru2/MatMul"],
    ],
)
def test_layers_are_in_the_order_of_their_numbers(names):
    graph = chain({name: 1.0 for name in reversed(names)} | {"dense": 1.0}, kind="sequence")
    placed = devices_by_op(graph, make_cluster(4))
    assert [placed[name] for name in names] == [0, 1, 2]
    assert placed["dense"] == 3


def mixed_cluster() -> Cluster:
    """The CPU first, then two GPUs."""
    devices = (
        Device("cpu0", "cpu", 10**9),
        Device("gpu0", "gpu", 10**9),
        Device("gpu1", "gpu", 10**9),
    )
    names = tuple(device.name for device in devices)
    return Cluster("mixed", devices, (Channel("bus", names, names, 1.0),))


def mixed_graph(gpu_of_last: float = 1.0):
    graph = chain({name: 1.0 for name in "abcd"}, kind="vision")
    gpu = np.array([1.0, 1.0, 1.0, gpu_of_last])
    return replace(graph, op_seconds={"cpu": np.full(4, 10.0), "gpu": gpu})


def test_only_devices_of_the_fastest_kind_are_used():
    placed = devices_by_op(mixed_graph(), mixed_cluster())
    assert list(placed.values()) == [1, 1, 2, 2]


def test_an_op_without_a_kernel_on_the_fastest_kind_goes_elsewhere_alone():
    placed = devices_by_op(mixed_graph(gpu_of_last=np.inf), mixed_cluster())
    assert placed["d"] == 0
    assert set(placed[name] for name in "abc") == {1, 2}


def test_the_bundled_nmt_has_its_layers_apart():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), "none")
    by_op = place(problem, "expert").op_devices()
    for scope, device in (
        ("embedding/source/", "gpu0"),
        ("encoder/layer_0/", "gpu0"),
        ("decoder/layer_0/", "gpu0"),
        ("gradient_tape/decoder/layer_0/", "gpu0"),
        ("encoder/layer_1/", "gpu1"),
        ("decoder/layer_1/", "gpu1"),
        ("attention/", "gpu3"),
        ("softmax/", "gpu3"),
    ):
        assert {by_op[name] for name in by_op if name.startswith(scope)} == {device}
