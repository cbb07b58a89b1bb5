"""Every kind of source, and what is said of those that cannot be used."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placeto.extraction import extract
from placeto.graph import load_graph
from placeto.support.errors import PlacetoError
from tests.extraction.running import STEPS, losses


def test_attention_and_embeddings(tmp_path: Path) -> None:
    path = tmp_path / "translator.json.gz"
    lines: list[str] = []
    extraction = extract(
        f"{STEPS}:translator?batch=4&optimizer=adam&learning_rate=0.02", progress=lines.append
    )
    extraction.save(path)
    graph = extraction.graph
    assert graph.meta["warnings"] == []
    assert graph.meta["kind"] == "sequence"
    assert len(lines) >= 4 and all("\n" not in line for line in lines)
    by_name = dict(zip(graph.op_names, graph.param_bytes.tolist(), strict=True))
    assert by_name["source_table/embeddings"] == 50 * 16 * 4
    # Query x key: batch 4, 2 heads, 6 x 6 scores, 8 wide.
    assert 2 * 4 * 2 * 6 * 6 * 8 in graph.flops.tolist()
    first, *_, last = losses(path, 15, classes=50)
    assert last < 0.8 * first


def test_a_loop_costs_its_body_times_its_iterations() -> None:
    unrolled = extract(f"{STEPS}:translator?batch=8").graph
    looped = extract(f"{STEPS}:translator?batch=8&unroll=false").graph
    loops = [op for op, kind in enumerate(looped.op_types) if kind.endswith("While")]
    assert len(loops) == 2
    assert sum("placed as a whole" in line for line in looped.meta["warnings"]) == 2
    assert not any("iterations unknown" in line for line in looped.meta["warnings"])
    assert looped.flops.sum() == pytest.approx(unrolled.flops.sum(), rel=0.05)


def test_saved_model(tmp_path: Path) -> None:
    import tensorflow as tf

    class Step(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = tf.Variable(tf.ones((3, 2)), name="weights")

        @tf.function(input_signature=[tf.TensorSpec((None, 3), name="inputs")])
        def __call__(self, inputs: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.matmul(inputs, self.weights) ** 2)
            self.weights.assign_sub(0.1 * tape.gradient(loss, self.weights))
            return loss

    step = Step()
    folder = tmp_path / "saved"
    tf.saved_model.save(step, str(folder), signatures={"train": step.__call__})
    with pytest.raises(PlacetoError, match=r"has shape \[-1, 3\].*\?batch=N"):
        extract(str(folder))
    with pytest.raises(PlacetoError, match=r"no signature 'trian'; .*train"):
        extract(f"{folder}?signature=trian")
    path = tmp_path / "saved.json.gz"
    beside = extract(f"{folder}?signature=train&batch=4").save(path)
    (tmp_path / "plain.pb").write_bytes(gzip.decompress(beside.read_bytes()))
    with pytest.raises(PlacetoError, match="batch=9 has no use: no input has an unknown first"):
        extract(f"{tmp_path / 'plain.pb'}?batch=9")
    graph = load_graph(path)
    assert graph.meta["warnings"] == []
    assert not any("PartitionedCall" in kind for kind in graph.op_types)
    assert graph.flops[graph.op_types.index("MatMul")] == 2 * 4 * 3 * 2
    first, *_, last = losses(path, 10, classes=2)
    assert last < first


@pytest.mark.parametrize("name", ["step.pb", "step.pbtxt", "step.pb.gz", "step.pbtxt.gz"])
def test_graph_def_file(tmp_path: Path, name: str) -> None:
    from google.protobuf import text_format

    graph_def = two_roots()
    data = (
        text_format.MessageToString(graph_def).encode()
        if "pbtxt" in name
        else graph_def.SerializeToString()
    )
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    everything = extract(str(tmp_path / name)).graph
    assert everything.name == "step"
    assert {"product", "other"} <= set(everything.op_names)
    assert everything.meta["run"]["targets"] == []
    one = extract(f"{tmp_path / name}?fetch=product").graph
    assert "other" not in one.op_names
    assert one.flops.sum() == 2 * 4 * 5 * 6


def two_roots() -> Any:
    """A GraphDef of a 4 x 5 by 5 x 6 product, and of an op beside it."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        left = tf.compat.v1.placeholder(tf.float32, (4, 5), "left")
        tf.matmul(left, tf.compat.v1.placeholder(tf.float32, (5, 6), "right"), name="product")
        tf.exp(left, name="other")
    return graph.as_graph_def()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("nowhere.pb", "neither a file nor a directory"),
        ("http://x", "no module 'http'|has no function"),
        ("keras:InceptonV3", r"no model 'InceptonV3'; .*InceptionV3"),
        ("keras:ResNet50?bach=1", r"unknown option 'bach'; .*batch"),
        ("keras:ResNet50?image=8", "Keras cannot build the model"),
        ("keras:MobileNetV2?optimizer=ada", "optimizers: sgd, momentum, rmsprop, adam"),
        ("zoo:nmd", r"no model 'nmd'; .*nmt"),
        (f"{STEPS}:tinny", r"no function 'tinny'; .*tiny"),
        (f"{STEPS}:tiny?filter=3", r"unknown option 'filter'; .*filters"),
        (
            f"{STEPS}:regression?batch=3",
            "regression takes no 'batch'; options: rows, columns",
        ),
        (f"{STEPS}:dataset", "the step captures a dataset"),
        ("zoo:resnet50?classes=0", "classes"),
        ("zoo:nmt?layers=1&length=1", "nothing reads the source"),
        (f"{STEPS}:nothing", "returned int, expected a ConcreteFunction"),
        (f"{STEPS}:open_ended", "has no input_signature"),
        (f"{STEPS}:mistaken", r"AttributeError: there is no such layer \(.*steps\.py, line \d+\)"),
    ],
)
def test_sources_that_cannot_be_used(source: str, complaint: str) -> None:
    with pytest.raises(PlacetoError, match=complaint) as caught:
        extract(source)
    assert "\n" not in str(caught.value)


def test_a_sequential_model_whose_loss_is_a_sum() -> None:
    extraction = extract(f"{STEPS}:sequential?batch=2")
    graph = extraction.graph
    assert sum("dense" in name for name in graph.op_names) > 3
    for fetch in graph.meta["run"]["fetches"]:
        assert fetch.partition(":")[0] in graph.op_names
    assert not any("Conv3D" in warning for warning in graph.meta["warnings"])


def test_broken_graph_def_files(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pb"
    broken.write_bytes(np.random.default_rng(0).bytes(200))
    with pytest.raises(PlacetoError, match="not a GraphDef"):
        extract(str(broken))
    broken.write_bytes(b"")
    with pytest.raises(PlacetoError, match="no named ops"):
        extract(str(broken))
    graph_def = two_roots()
    (tmp_path / "whole.pb").write_bytes(graph_def.SerializeToString())
    with pytest.raises(PlacetoError, match=r"fetch 'loss' is not an op of whole\.pb"):
        extract(f"{tmp_path / 'whole.pb'}?fetch=loss")
    del graph_def.node[0]
    broken.write_bytes(graph_def.SerializeToString())
    with pytest.raises(PlacetoError, match="consumes 'left', which is not there"):
        extract(str(broken))
    with pytest.raises(PlacetoError, match="not a SavedModel"):
        extract(str(tmp_path))
