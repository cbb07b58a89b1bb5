"""Device figures against data sheets, and costs against Grappler's own for the same device."""

import pytest

from placeto.extraction.device_kinds import DEVICE_KINDS, cost_meta, estimated

# float32 TFLOPS and GB/s as the data sheets print them; the K80's are half a board's, no boost.
SHEETS = {
    "k40": (4.29, 288),
    "k80": (5.6 / 2, 480 / 2),
    "p100": (9.3, 732),
    "v100": (15.7, 900),
    "a100": (19.5, 2039),
    "h100": (67, 3350),
    "h200": (67, 4800),
    "b200": (600 / 8, 64000 / 8),
    "a10": (31.2, 600),
    "l4": (30.3, 300),
    "l40s": (91.6, 864),
    "geforce-rtx-3090": (35.6, 936),
    "geforce-rtx-4090": (82.6, 1008),
    "cpu": (18 * 2.3 * 32 / 1000, 68),
}


@pytest.mark.parametrize("kind", DEVICE_KINDS, ids=lambda kind: kind.name)
def test_peaks_are_those_of_the_data_sheet(kind) -> None:
    teraflops, gigabytes = SHEETS[kind.name]
    assert kind.flops_per_second == pytest.approx(teraflops * 1e12, rel=0.05)
    assert kind.bytes_per_second == pytest.approx(gigabytes * 1e9, rel=0.05)


def test_kinds_that_were_not_measured() -> None:
    costs = cost_meta("roofline")
    costs["kinds"] |= {"box-a100": {"alone": 1.0, "machine": {}}, "k80": {"alone": 0.5}}
    kinds = ("l4", "box-a100", "k80", "mine", "h100")
    assert estimated({"costs": costs}, kinds) == ["l4", "h100"]
    for meta in ({}, {"costs": "by hand"}, {"costs": {"kinds": ["l4"]}}):
        assert estimated(meta, kinds) == []


@pytest.mark.parametrize(
    ("name", "architecture"), [("k40", "3.5"), ("k80", "3.7"), ("p100", "6.0"), ("v100", "7.0")]
)
def test_seconds_agree_with_grappler_on_a_device_it_knows(name: str, architecture: str) -> None:
    import tensorflow as tf
    from tensorflow.core.protobuf.device_properties_pb2 import DeviceProperties, NamedDevice
    from tensorflow.python.grappler.cluster import Cluster
    from tensorflow.python.grappler.item import Item

    from placeto.extraction.grappler import meta_graph
    from placeto.extraction.step import TrainingStep
    from placeto.extraction.work import measure_work

    with tf.Graph().as_default() as graph:
        image = tf.compat.v1.placeholder(tf.float32, (32, 64, 64, 128), "image")
        filters = tf.compat.v1.placeholder(tf.float32, (3, 3, 128, 256), "filters")
        hidden = tf.nn.conv2d(image, filters, 1, "SAME", name="conv")
        tf.reduce_sum(tf.nn.relu(hidden, "relu"), name="sum")
    step = TrainingStep("step", graph.as_graph_def(), ("sum:0",), ())
    kind = next(kind for kind in DEVICE_KINDS if kind.name == name)
    ours = measure_work(step).seconds(kind)
    device = DeviceProperties(
        type="GPU",
        frequency=int(kind.clock_hertz / 1e6),
        num_cores=kind.multiprocessors,
        bandwidth=int(kind.bytes_per_second / 1e3),
        memory_size=12 << 30,
        environment={"architecture": architecture},
    )
    cluster = Cluster(devices=[NamedDevice(name="/device:GPU:0", properties=device)])
    costs, _, _ = cluster.MeasureCosts(Item(meta_graph(step.graph_def, step.roots)))
    cluster.Shutdown()
    theirs = {cost.node: cost.compute_cost / 1e9 for cost in costs}
    for position, node in enumerate(step.graph_def.node):
        # Grappler rounds down to microseconds, its sum of two parts by as much again.
        assert ours[position] == pytest.approx(theirs[node.name], rel=1e-3, abs=3e-6)
    assert theirs["conv"] > 1e-3
