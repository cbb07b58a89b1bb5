"""Steps of several microbatches: the same update, and ops that know whose they are."""

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, save_graph
from placeto.extraction import extract
from placeto.graph import BACKWARD, FORWARD, UPDATE
from tests.extraction.running import STEPS

BATCH = 8
DENSE = f"{STEPS}:tiny?batch={BATCH}"
SPARSE = f"zoo:rnnlm?layers=1&batch={BATCH}&length=3&hidden=8&embedding=6&vocabulary=20&clip=0.5"


@pytest.fixture(scope="module")
def made():
    known = {}

    def of(source, count):
        if (source, count) not in known:
            known[source, count] = extract(f"{source}&microbatches={count}")
        return known[source, count]

    return of


def after_a_step(extraction, batch, values=None):
    """The loss of a step on a batch, and all variables before and after it, by name.

    `batch` has all examples of each input, by its name; variables begin with `values`.
    """
    import tensorflow as tf

    run = extraction.graph.meta["run"]
    count = extraction.graph.num_microbatches
    feed = {}
    for each in run["inputs"]:
        scope, _, name = each["name"].rpartition("/")
        part = int(scope.removeprefix("microbatch") or 0)
        feed[f"{each['name']}:0"] = np.split(batch[name], count)[part]
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(extraction.graph_def, name="")
        reads, writes = {}, []
        for node in extraction.graph_def.node:
            if node.op == "VarHandleOp":
                handle = graph.get_tensor_by_name(f"{node.name}:0")
                dtype = node.attr["dtype"].type
                reads[node.name] = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
                if values is not None:
                    given = tf.constant(values[node.name])
                    writes.append(tf.raw_ops.AssignVariableOp(resource=handle, value=given))
        with tf.compat.v1.Session() as session:
            session.run(run["initializer"])
            session.run(writes)
            before = session.run(reads)
            loss = session.run([run["fetches"][0], *run["targets"]], feed)[0]
            return float(loss), before, session.run(reads)


@pytest.mark.parametrize("source", [DENSE, SPARSE])
@pytest.mark.parametrize("count", [2, 4])
def test_the_update_is_that_of_the_whole_batch(made, source, count):
    rng = np.random.default_rng(0)
    batch = {
        "image": rng.standard_normal((BATCH, 8, 8, 3)), "label_0": rng.integers(0, 5, BATCH),
        "words": rng.integers(0, 20, (BATCH, 4)),
    }  # fmt: skip
    loss, before, whole = after_a_step(made(source, 1), batch)
    other, _, parts = after_a_step(made(source, count), batch, before)
    assert other == pytest.approx(loss, rel=1e-5)
    assert parts.keys() == whole.keys()
    moved = max(np.abs(whole[name] - before[name]).max() for name in whole)
    assert moved > 1e-3
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], rtol=0, atol=1e-5 * moved)


@pytest.mark.parametrize("source", [DENSE, SPARSE])
def test_ops_know_their_microbatch_their_copy_and_their_phase(made, source):
    graph, count = made(source, 4).graph, 4
    assert graph.num_microbatches == count
    assert graph.batch == BATCH
    copies = np.flatnonzero(graph.copy_of >= 0)
    for op in copies.tolist():
        first, number = graph.copy_of[op], graph.microbatch[op]
        name = graph.op_names[op].replace(f"microbatch{number}/", "microbatch0/")
        assert graph.op_names[first] == name
        assert graph.op_types[first] == graph.op_types[op]
        assert graph.phase[first] == graph.phase[op]
        assert graph.op_seconds["p100"][first] == graph.op_seconds["p100"][op]
    # Of each op of microbatch 0 there are as many copies as there are others.
    first = np.flatnonzero(graph.microbatch == 0)
    assert np.array_equal(np.bincount(graph.copy_of[copies])[first], np.full(len(first), count - 1))
    alone = np.flatnonzero((graph.microbatch > 0) & (graph.copy_of < 0))
    assert all("/accumulate/" in graph.op_names[op] for op in alone.tolist())
    assert (graph.phase[alone] == BACKWARD).all()
    kinds = dict(zip(graph.op_names, graph.phase.tolist(), strict=True))
    assert all(kinds[name] == BACKWARD for name in kinds if "gradient_tape/" in name)
    updates = [op for op, kind in enumerate(graph.op_types) if "Apply" in kind or "Assign" in kind]
    assert (graph.phase[updates] == UPDATE).all()
    assert (graph.microbatch[graph.phase == UPDATE] == -1).all()
    # No data goes from the backward pass to the forward pass, nor from one forward to another.
    for producer, consumer in np.stack(graph.op_edges, axis=1).tolist():
        if graph.microbatch[producer] >= 0:
            assert graph.phase[consumer] >= graph.phase[producer]
            if graph.phase[consumer] == FORWARD:
                assert graph.microbatch[consumer] == graph.microbatch[producer]


def test_weights_are_read_once(made):
    one, four = made(DENSE, 1).graph, made(DENSE, 4).graph
    assert one.op_types.count("ReadVariableOp") == four.op_types.count("ReadVariableOp")


def test_copies_share_a_group_and_files_have_it_all(made, tmp_path):
    graph = made(DENSE, 4).graph
    save_graph(graph, tmp_path / "four.json.gz")
    assert load_graph(tmp_path / "four.json.gz") == graph
    copies = np.flatnonzero(graph.copy_of >= 0)
    for grouping in ("auto", "papers", "none", 5):
        groups = PlacementProblem(graph, load_cluster("k80x2"), grouping).op_group
        assert np.array_equal(groups[copies], groups[graph.copy_of[copies]])
    assert made(DENSE, 1).graph.num_microbatches == 1


def test_batch_normalization_by_microbatch_is_told():
    source = f"{STEPS}:normalized?batch=4"
    assert not extract(source).graph.meta["warnings"]
    (warning,) = extract(f"{source}&microbatches=2").graph.meta["warnings"]
    assert "batch normalization is by microbatch" in warning


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{DENSE}&microbatches=3", "microbatches=3 does not divide batch=8"),
        (f"{DENSE}&microbatches=0", "microbatches=0 does not divide batch=8"),
        (f"{SPARSE}&microbatches=5", "rnnlm: microbatches=5 does not divide batch=8"),
        (f"{STEPS}:regression?microbatches=2", "takes no 'microbatches'"),
    ],
)
def test_batches_that_cannot_be_divided(source, message):
    with pytest.raises(PlacetoError, match=message):
        extract(source)
