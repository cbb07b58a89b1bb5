"""Placeholders, replaced where they are consumed."""

import pytest

from placeto.measurement.inputs import with_inputs


def graph_def():
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        with graph.device("/device:CPU:0"):
            given = tf.compat.v1.placeholder(tf.float32, (3, 2), "given")
            label = tf.compat.v1.placeholder(tf.int32, (50,), "label")
            tf.identity(given, "near")
            tf.identity(label, "chosen")
        with graph.device("/device:CPU:1"):
            tf.identity(given, "far")
            tf.add(given, given, "twice")
    return graph.as_graph_def()


@pytest.fixture
def replaced():
    changed = graph_def()
    return changed, with_inputs(changed)


def test_each_consumer_has_its_input_on_its_own_device(replaced):
    nodes = {node.name: node for node in replaced[0].node}
    assert not [node for node in nodes.values() if node.op == "Placeholder"]
    for consumer in ("near", "far", "twice", "chosen"):
        for tensor in nodes[consumer].input:
            assert nodes[tensor].device == nodes[consumer].device
    assert list(nodes["near"].input) == ["given"]
    assert nodes["far"].input[0] == nodes["twice"].input[1] != "given"
    assert all(node.device for node in nodes.values())


def test_values_stay_the_same_from_step_to_step(replaced):
    import tensorflow as tf

    changed, initializers = replaced
    config = tf.compat.v1.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default():
        tf.import_graph_def(changed, name="")
        with tf.compat.v1.Session(config=config) as session:
            session.run(initializers)
            first, second = (session.run(["near:0", "far:0", "chosen:0"]) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert (one == other).all()
    assert (first[0] == first[1]).all()
    assert first[0].std() > 0.1
    assert set(first[2]) == {0, 1}
