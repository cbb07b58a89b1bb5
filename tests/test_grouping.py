from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placeto
from benchmarks.synthetic import synthetic_graph
from placeto import ComputationGraph, PlacetoError
from placeto.grouping import AUTO_MAX_GROUPS, coarsen, colocation_groups, group_ops
from tests.builders import make_graph
from tests.reference_grouping import colocation
from tests.strategies import graphs

SCOPES = ("net", "net/dense", "net/dense/MatMul", "net/norm", "loss", "other/dense")


def cut_bytes(graph: ComputationGraph, op_group: np.ndarray) -> int:
    """Bytes of all (tensor, other group that reads it)."""
    count = int(op_group.max()) + 1
    copies = np.unique(graph.edge_tensor * count + op_group[graph.edge_consumer])
    source = op_group[graph.tensor_producer[copies // count]]
    return int(graph.tensor_bytes[copies // count][source != copies % count].sum())


def time_shares(graph: ComputationGraph, op_group: np.ndarray) -> np.ndarray:
    shares = [column / column.sum() for column in graph.op_seconds.values()]
    return np.bincount(op_group, weights=np.mean(shares, axis=0))


@given(graphs(max_ops=25), st.data())
def test_colocation_rules_against_plain_ones(graph: ComputationGraph, data: st.DataObject) -> None:
    prefix, scope = st.sampled_from(["", "", "gradient_tape/"]), st.sampled_from(SCOPES)
    leaf = st.sampled_from(["", "/a", "/a/b", "/c"])
    name = st.builds("".join, st.tuples(prefix, scope, leaf))
    names = data.draw(
        st.lists(name, min_size=graph.num_ops, max_size=graph.num_ops).map(
            lambda drawn: [n if drawn.index(n) == i else f"{n}/{i}" for i, n in enumerate(drawn)]
        )
    )
    graph = replace(graph, op_names=names)
    assert colocation_groups(graph).tolist() == colocation(graph)


def test_none_joins_colocated_ops_only() -> None:
    graph = make_graph(
        {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1},
        [("a", 1, ["b"])],
        colocation={"b": 7, "e": 7, "c": 0},
    )
    assert group_ops(graph, "none").tolist() == [0, 1, 2, 3, 1]


def test_groups_part_gradients_from_their_forward_ops() -> None:
    graph = placeto.load_graph("rnnlm")
    auto = group_ops(graph, "auto")
    assert 280 < auto.max() + 1 <= AUTO_MAX_GROUPS
    required = group_ops(graph, "none")
    assert len(np.unique(required * graph.num_ops + auto)) == required.max() + 1
    parted = colocation_groups(graph) * graph.num_ops + auto
    assert len(np.unique(parted)) > auto.max() + 1
    few = make_graph({"a": 1, "b": 1, "c": 1}, [("a", 1, ["b"]), ("b", 1, ["c"])])
    assert group_ops(few, "auto").tolist() == [0, 1, 2]


def test_gradients_join_their_forward_op() -> None:
    graph = make_graph(
        {
            "net/dense/MatMul": 1,
            "net/dense/BiasAdd": 1,
            "net/loss": 1,
            "gradient_tape/net/dense/MatMul/MatMul": 1,
            "gradient_tape/net/dense/MatMul/MatMul_1": 1,
            "gradient_tape/net/dense/BiasAdd/BiasAddGrad": 1,
            "other/MatMul": 1,
        }
    )
    assert colocation_groups(graph).tolist() == [0, 1, 2, 0, 0, 1, 3]


def test_gradient_of_a_scope_joins_its_first_op() -> None:
    # No op is named net/norm, but two are inside of it. A single part names the whole model: the
    # last op stays alone.
    graph = make_graph(
        {"net/in": 1, "net/norm/mean": 1, "net/norm/mul": 1, "gradient_tape/net/norm/Sum": 1,
         "gradient_tape/net": 1},
    )  # fmt: skip
    assert colocation_groups(graph).tolist() == [0, 1, 2, 1, 3]


def test_sole_consumers_join_unless_both_are_heavy() -> None:
    # a (light) is read by b only: joined. b and c are heavy, each other's sole neighbours: apart.
    # d (light) is read by e and f: apart from both. f reads e, whose sole consumer it is, though
    # e has two tensors: joined, since f is light.
    graph = make_graph(
        {"a": 0, "b": 1, "c": 1, "d": 0, "e": 1, "f": 0},
        [("a", 1, ["b"]), ("b", 1, ["c"]), ("d", 1, ["e"]), ("d", 1, ["f"]), ("e", 1, ["f"]),
         ("e", 2, ["f"])],
    )  # fmt: skip
    assert colocation_groups(graph).tolist() == [0, 0, 1, 2, 3, 3]


@given(graphs(), st.integers(1, 12))
def test_at_most_n_groups_that_keep_colocation(graph: ComputationGraph, count: int) -> None:
    fine, coarse = group_ops(graph, "none"), group_ops(graph, count)
    assert len(np.unique(coarse)) <= count
    assert len(np.unique(coarse)) == min(count, len(np.unique(fine)))
    # Coarsening joins groups, and never parts one.
    assert len(np.unique(fine * graph.num_ops + coarse)) == len(np.unique(fine))
    for key in set(graph.colocation.tolist()) - {-1}:
        assert len(np.unique(coarse[graph.colocation == key])) == 1
        assert len(np.unique(fine[graph.colocation == key])) == 1


@given(graphs(), st.sampled_from(["none", "papers", "auto", 3]))
def test_numbered_by_first_op(graph: ComputationGraph, grouping: str | int) -> None:
    groups = group_ops(graph, grouping)
    first = list(dict.fromkeys(groups.tolist()))
    assert first == list(range(len(first)))
    assert not groups.flags.writeable


@given(graphs(max_ops=20))
def test_array_is_kept_as_it_is(graph: ComputationGraph) -> None:
    groups = group_ops(graph, "none")
    turned = groups.max() - groups
    assert group_ops(graph, turned).tolist() == turned.tolist()
    assert group_ops(graph, turned.tolist()).tolist() == turned.tolist()


def test_coarsening_cuts_the_thin_edge() -> None:
    # Two chains of four equal ops with 100 bytes an edge, and 1 byte from one to the other.
    names = "abcdefgh"
    tensors = [(names[i], 1 if i == 3 else 100, [names[i + 1]]) for i in range(7)]
    graph = make_graph(dict.fromkeys(names, 1.0), tensors)
    assert coarsen(graph, np.arange(8), 2).tolist() == [0] * 4 + [1] * 4


def test_coarsening_joins_separate_parts() -> None:
    graph = make_graph({"a": 3, "b": 1, "c": 2, "d": 9})
    assert len(set(coarsen(graph, np.arange(4), 2).tolist())) == 2
    assert set(coarsen(graph, np.arange(4), 1).tolist()) == {0}


@pytest.mark.parametrize("name", ["inception_v3", "nmt"])
@pytest.mark.parametrize("count", [16, 64])
def test_coarsening_of_real_graphs(name: str, count: int) -> None:
    graph = placeto.load_graph(name)
    fine, coarse = group_ops(graph, "none"), group_ops(graph, count)
    assert coarse.max() + 1 == count
    rng = np.random.default_rng(0)
    random = rng.integers(0, count, fine.max() + 1)[fine]
    # The weights of a recurrent layer feed every time step: much of NMT's cut cannot be avoided.
    assert cut_bytes(graph, coarse) < cut_bytes(graph, random) * 0.8
    # No group has more than a few even shares of the step's time, if it could be avoided.
    whole = time_shares(graph, fine).max()
    assert time_shares(graph, coarse).max() <= max(4 / count, 2 * whole)


def test_groups_are_as_many_as_in_the_papers() -> None:
    for name in ("inception_v3", "nmt"):
        assert 83 <= len(set(group_ops(placeto.load_graph(name), "papers").tolist())) <= 280


@pytest.mark.parametrize(
    ("grouping", "message"),
    [
        ("metis5", r"grouping is 'metis5', expected auto, papers, none, or a number"),
        (0, r"grouping is 0, expected at least 1 group"),
        (-3, r"grouping is -3, expected at least 1 group"),
        (2.0, r"grouping is 2.0, expected at least 1 group"),
        (True, r"grouping is True, expected at least 1 group"),
        ([0, 1], r"grouping has shape \(2,\) of int64, expected \(3,\) whole numbers"),
        ([0.0, 1.0, 2.0], r"grouping has shape \(3,\) of float64, expected \(3,\) whole"),
        ([[0, 1, 2]], r"grouping has shape \(1, 3\)"),
        ([[0], [1, 2]], r"grouping is not an array of groups"),
        ([0, -1, 1], r"grouping\[1\] is -1, groups are numbered from 0"),
        ([0, 3, 1], r"grouping\[1\] is 3, but 3 ops make at most as many groups"),
        ([0, 2, 2], r"grouping has no op in group 1, though groups go up to 2"),
        ([0, 1, 1], r"grouping parts 'a' \(group 0\) from 'c' \(group 1\), which colocation key 5"),
    ],
)
def test_errors(grouping: object, message: str) -> None:
    graph = make_graph({"a": 1, "b": 1, "c": 1}, colocation={"a": 5, "c": 5})
    with pytest.raises(PlacetoError, match=message):
        group_ops(graph, grouping)


def test_coarsening_is_not_spoilt_by_separate_parts() -> None:
    # Twenty ops of no time on their own, and a chain of sixteen equal ops: the former take no
    # more than one of the four groups, so that the chain's parts are of at most half its time.
    names = [f"chain{index}" for index in range(16)]
    seconds = dict.fromkeys(names, 1.0) | {f"lone{index}": 0.0 for index in range(20)}
    graph = make_graph(seconds, [(a, 8, [b]) for a, b in pairwise(names)])
    groups = coarsen(graph, np.arange(36), 4)
    assert len(set(groups[16:].tolist())) == 1
    assert time_shares(graph, groups).max() <= 0.5


@pytest.mark.parametrize("grouping", ["none", "papers", "auto"])
def test_as_large_as_the_largest_graph_of_the_papers(grouping: str) -> None:
    graph = synthetic_graph(80_000)
    groups = group_ops(graph, grouping)
    first = np.unique(groups, return_index=True)[1]
    assert groups.max() + 1 == len(first)
    assert (np.diff(first) > 0).all()  # numbered by their first op
    keyed = graph.colocation >= 0
    assert len(np.unique(graph.colocation[keyed])) == len(
        np.unique(graph.colocation[keyed] * graph.num_ops + groups[keyed])
    )
    if grouping == "papers":
        assert len(first) == 280
        assert time_shares(graph, groups).max() <= 4 / 280
        number = {name: op for op, name in enumerate(graph.op_names)}
        for name in ("block_3/op_1", "block_400/op_20", "block_799/op_31"):
            assert groups[number[name]] == groups[number[f"gradient_tape/{name}/grad"]]
