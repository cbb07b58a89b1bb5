"""Devices on every op of a GraphDef."""

from dataclasses import replace

import numpy as np
import pytest

from placeto import Cluster, Device, PlacementProblem, PlacetoError
from placeto.cluster import Channel
from placeto.placement import Placement
from placeto.placement.placed_graph import add_control_edges
from tests.builders import make_graph

TENSORS = [("v", 0, ["read", "write"]), ("read", 4, ["mul"]), ("mul", 4, ["write"])]
GRAPH = make_graph(
    {"mul": 1.0, "v": 1.0, "read": 1.0, "write": 1.0},
    TENSORS,
    colocation={"v": 0, "read": 0, "write": 0},
)
DEVICES = tuple(Device(f"d{i}", "k", 1, tensorflow=f"/device:CPU:{i}") for i in range(3))
ENDS = ("d0", "d1", "d2")
CLUSTER = Cluster("three", DEVICES, (Channel("all", ENDS, ENDS, 1.0),))


def graph_def():
    from tensorflow.core.framework.graph_pb2 import GraphDef

    made = GraphDef()
    for name, op, inputs in [
        ("v", "VarHandleOp", []),
        ("read", "ReadVariableOp", ["v"]),
        ("mul", "Square", ["read"]),
        ("write", "AssignSubVariableOp", ["v", "mul"]),
        ("init/shape", "Const", []),
        ("init/value", "RandomStandardNormal", ["init/shape"]),
        ("init/assign", "AssignVariableOp", ["v", "init/value"]),
        ("init", "NoOp", ["^init/assign"]),
        ("save", "ReadVariableOp", ["v"]),
        ("alone", "NoOp", []),
    ]:
        made.node.add(name=name, op=op, device="/device:GPU:9").input.extend(inputs)
    return made


def placement(cluster=CLUSTER, variable=2, product=1):
    problem = PlacementProblem(GRAPH, cluster, "papers")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [product, variable, variable, variable]
    return Placement(problem, devices, 1.0, np.zeros(3), True)


def test_every_op_has_the_device_of_its_placement_or_of_its_variable():
    given = graph_def()
    applied = placement().apply(given)
    cpu = "/job:localhost/replica:0/task:0/device:CPU:"
    devices = {node.name: node.device.removeprefix(cpu) for node in applied.node}
    assert devices.pop("alone") in "012"
    assert devices == {
        "v": "2", "read": "2", "mul": "1", "write": "2",
        "init/shape": "2", "init/value": "2", "init/assign": "2", "init": "2", "save": "2",
    }  # fmt: skip
    assert given == graph_def()


def test_a_device_that_tensorflow_does_not_know():
    unnamed = replace(DEVICES[1], tensorflow=None)
    cluster = replace(CLUSTER, devices=(DEVICES[0], unnamed, DEVICES[2]))
    with pytest.raises(PlacetoError, match="device 'd1': tensorflow is missing"):
        placement(cluster).apply(graph_def())


def test_ops_are_kept_in_the_simulated_order():
    # All on one device, where the second product starts as the first one ends.
    graph = make_graph({"mul": 1.0, "other": 2.0})
    problem = PlacementProblem(replace(graph, op_types=["Square", "Square"]), CLUSTER, "none")
    made = Placement(problem, np.zeros(2, dtype=np.int64), 3.0, np.zeros(3), True)
    given = graph_def()
    given.node.add(name="other", op="Square").input.append("read")
    inputs = {node.name: list(node.input) for node in made.apply(given).node}
    assert inputs["other"] == ["read", "^mul"]
    assert inputs["mul"] == ["read"]
    assert made.apply(given, order="none").node[-1].input == ["read"]
    with pytest.raises(PlacetoError, match="order is 'gpipe', expected fifo or none"):
        made.apply(given, order="gpipe")


def convolution(graph):
    """The gradient of a convolution with a bias, as ops that oneDNN merges two by two."""
    import tensorflow as tf

    with graph.as_default():
        x, weights = tf.ones([2, 8, 8, 4]), tf.ones([3, 3, 4, 4])
        made = tf.nn.bias_add(tf.nn.conv2d(x, weights, 1, "SAME", name="conv"), tf.ones([4]))
        error = tf.identity(made, name="error")
        args = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        tf.raw_ops.Conv2DBackpropFilter(
            input=x, filter_sizes=[3, 3, 4, 4], out_backprop=error, name="filter", **args
        )
        tf.identity(tf.ones([4]), name="before")
        tf.raw_ops.BiasAddGrad(out_backprop=error, name="bias")
    return graph.as_graph_def()


def test_what_is_kept_in_order_is_not_merged_to_a_cycle():
    import tensorflow as tf

    made = convolution(tf.Graph())
    # Between a convolution and what adds its bias comes the bias, between its gradients an op.
    add_control_edges(made, [("conv", "ones_2"), ("filter", "before"), ("before", "bias")])
    with tf.Graph().as_default():
        tf.graph_util.import_graph_def(made, name="")
        options = tf.compat.v1.ConfigProto()
        options.graph_options.rewrite_options.disable_meta_optimizer = True
        options.graph_options.optimizer_options.opt_level = -1
        with tf.compat.v1.Session(config=options) as session:
            added, of_filter, of_bias = session.run(["error:0", "filter:0", "bias:0"])
    assert added[0, 4, 4].tolist() == [37.0] * 4
    assert of_bias.tolist() == added.sum(axis=(0, 1, 2)).tolist()
    assert of_filter[1, 1, 0].tolist() == of_bias.tolist()  # of ones
    inputs = {node.name: list(node.input) for node in made.node}
    assert inputs["BiasAdd"][0] == "placeto_apart/BiasAdd"
    assert inputs["bias"][0] == "placeto_apart/bias"
