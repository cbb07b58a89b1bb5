import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import placeto
from placeto import ComputationGraph, PlacetoError, from_networkx, to_networkx
from tests.strategies import graphs


@given(graphs(max_ops=30))
def test_there_and_back(graph: ComputationGraph) -> None:
    assert from_networkx(to_networkx(graph)) == graph


def test_bundled_graph_there_and_back() -> None:
    graph = placeto.load_graph("inception_v3")
    assert from_networkx(to_networkx(graph)) == graph


def test_nodes_and_edges_are_the_ops_and_their_reads() -> None:
    graph = placeto.load_graph("inception_v3")
    result = to_networkx(graph)
    assert list(result) == list(graph.op_names)
    assert result.number_of_edges() == graph.num_edges
    assert nx.is_directed_acyclic_graph(result)


def test_by_hand() -> None:
    g = nx.DiGraph(name="small")
    g.add_node("a", seconds=1, type="MatMul", param_bytes=8, flops=100, colocation=3)
    g.add_node("b", seconds={"gpu": 2, "cpu": np.inf}, temp_bytes=5)
    g.add_node("c", seconds=0.5)
    g.add_edge("a", "b", bytes=4, tensor="x")
    g.add_edge("a", "c", bytes=4, tensor="x")
    g.add_edge("b", "c")
    graph = from_networkx(g)
    assert graph.name == "small"
    assert graph.op_names == ("a", "b", "c")
    assert graph.op_types == ("MatMul", "Op", "Op")
    assert graph.tensor_producer.tolist() == [0, 1]
    assert graph.tensor_bytes.tolist() == [4, 0]
    assert graph.edge_tensor.tolist() == [0, 0, 1]
    assert graph.edge_consumer.tolist() == [1, 2, 2]
    assert graph.param_bytes.tolist() == [8, 0, 0]
    assert graph.temp_bytes.tolist() == [0, 5, 0]
    assert graph.colocation.tolist() == [3, -1, -1]
    assert graph.flops.tolist() == [100, 0, 0]


def test_number_of_seconds_holds_for_the_kinds_of_others() -> None:
    g = nx.DiGraph()
    g.add_node("a", seconds=1)
    g.add_node("b", seconds={"gpu": 2, "cpu": np.inf})
    graph = from_networkx(g, "named", kinds=["k40"])
    assert graph.name == "named"
    seconds = {kind: column.tolist() for kind, column in graph.op_seconds.items()}
    assert seconds == {"gpu": [1, 2], "cpu": [1, np.inf]}
    g.nodes["b"]["seconds"] = 2
    assert list(from_networkx(g, kinds=["k40", "k80"]).op_seconds) == ["k40", "k80"]


def test_parallel_edges_are_tensors_of_their_own_unless_keyed() -> None:
    g = nx.MultiDiGraph()
    g.add_nodes_from([0, 1], seconds=1)
    g.add_edge(0, 1, bytes=3)
    g.add_edge(0, 1, bytes=3)
    g.add_edge(0, 1, bytes=7, tensor=0)
    g.add_edge(0, 1, bytes=7, tensor=0)
    graph = from_networkx(g)
    assert graph.op_names == ("0", "1")
    assert graph.tensor_bytes.tolist() == [7, 3, 3]
    assert graph.edge_tensor.tolist() == [0, 1, 2]
    assert list(graph.op_seconds) == ["k80"]


def test_unread_outputs_survive_between_others() -> None:
    g = nx.MultiDiGraph()
    g.add_node("a", seconds=1, unread_outputs={1: 9})
    g.add_node("b", seconds=1)
    g.add_edge("a", "b", tensor=2, bytes=2)
    g.add_edge("a", "b", tensor=0, bytes=5)
    assert from_networkx(g).tensor_bytes.tolist() == [5, 9, 2]


def two_nodes(edge: dict[str, object] | None = None, **node: object) -> nx.DiGraph:
    g = nx.DiGraph(name="g")
    g.add_node("a", **({"seconds": 1} | node))
    g.add_node("b", seconds=1)
    g.add_edge("a", "b", **(edge or {}))
    return g


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (two_nodes(seconds=-1), r"graph 'g': node 'a': seconds is -1, expected a number from 0"),
        (two_nodes(seconds=np.nan), r"graph 'g': node 'a': seconds is nan, expected a number"),
        (two_nodes(seconds="1"), r"graph 'g': node 'a': seconds is '1', expected a number"),
        (two_nodes(seconds=10**400), r"node 'a': seconds is 1000.* too large"),
        (two_nodes(seconds={"k": True}), r"graph 'g': node 'a': seconds is True, expected"),
        (two_nodes(param_bytes=-3), r"graph 'g': node 'a': param_bytes is -3, expected a whole"),
        (two_nodes(temp_bytes=1.5), r"graph 'g': node 'a': temp_bytes is 1.5, expected a whole"),
        (two_nodes(colocation=-2), r"node 'a': colocation is -2, expected a whole number from -1"),
        (two_nodes(flops=-1.0), r"graph 'g': node 'a': flops is -1.0, expected a number from 0"),
        (two_nodes(flops=np.inf), r"graph 'g': ops.flops has an infinite value"),
        (two_nodes(type=3), r"graph 'g': ops.type\[0\] is 3, expected a string"),
        (two_nodes(unread_outputs=[1]), r"node 'a': unread_outputs is \[1\], expected a dict"),
        (two_nodes(unread_outputs={"x": -1}), r"node 'a': unread_outputs: x is -1, expected"),
        (two_nodes({"bytes": -4}), r"graph 'g': edge 'a' -> 'b': bytes is -4, expected a whole"),
        (two_nodes({"bytes": "4"}), r"graph 'g': edge 'a' -> 'b': bytes is '4', expected a whole"),
        (two_nodes({"bytes": 2**70}), r"graph 'g': edge 'a' -> 'b': bytes is 11805916207174"),
        (two_nodes({"tensor": []}), r"edge 'a' -> 'b': tensor is \[\], expected a number or text"),
        (nx.Graph(name="g"), r"graph 'g': is undirected, expected a DiGraph or a MultiDiGraph"),
        (nx.DiGraph(name="g"), r"graph 'g': has no ops"),
        (nx.DiGraph([(1, 2)], name="g"), r"graph 'g': node '1': has no attribute 'seconds'"),
    ],
)  # fmt: skip
def test_bad_attributes(graph: nx.DiGraph, message: str) -> None:
    with pytest.raises(PlacetoError, match=message):
        from_networkx(graph)


def test_other_attributes_are_left_alone() -> None:
    g = two_nodes({"label": "x", "weight": 3}, label="y", shape=(2, 3))
    assert from_networkx(g) == from_networkx(two_nodes())
