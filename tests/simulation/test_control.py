"""Control dependencies that keep a schedule's order: by hand, and against transitive reduction."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, simulate
from placeto.simulation import control_edges, ordered_ops, starting_order
from tests.builders import make_cluster, make_graph, make_pipelined, make_problem
from tests.strategies import large_placed, placed


def named(problem, devices):
    names = problem.graph.op_names
    edges = control_edges(problem, simulate(problem, devices))
    return [(names[before], names[after]) for before, after in edges.tolist()]


def test_an_edge_where_nothing_else_says_who_goes_first():
    # On d0: a [0, 1), then b [1, 4), which a feeds, and c [4, 5), which a feeds as well; on d1: e.
    graph = make_graph({"a": 1, "b": 3, "c": 1, "e": 1}, [("a", 1, ["b", "c"]), ("c", 1, ["e"])])
    problem = make_problem(graph, make_cluster(2))
    assert named(problem, [0, 0, 0, 1]) == [("b", "c")]
    # All on one device: e starts last anyway, after c.
    assert named(problem, [0, 0, 0, 0]) == [("b", "c")]


def test_a_path_over_another_device_is_an_order_too():
    # a on d0 feeds b on d1, which feeds c on d0: c cannot start before a.
    graph = make_graph({"a": 1, "b": 1, "c": 1}, [("a", 0, ["b"]), ("b", 0, ["c"])])
    assert named(make_problem(graph, make_cluster(2)), [0, 1, 0]) == []
    # x [0, 5) on d1 holds b up, and b is the last to start there; y [1, 2) goes between a and c.
    graph = make_graph({"a": 1, "x": 5, "b": 1, "c": 1, "y": 1}, [("a", 0, ["b"]), ("b", 0, ["c"])])
    edges = named(make_problem(graph, make_cluster(2)), [0, 1, 1, 0, 0])
    assert edges == [("a", "y"), ("x", "b"), ("y", "c")]


def test_what_takes_no_time_is_left_free():
    kinds = ["Const", "Identity", "MatMul", "VarHandleOp", "Relu", "NoOp", "Placeholder"]
    graph = make_graph(dict.fromkeys("abcdefg", 1.0))
    problem = make_problem(replace(graph, op_types=kinds), make_cluster(1))
    assert named(problem, [0] * 7) == [("c", "e")]


def test_what_may_not_run_at_all_is_left_free():
    # A branch as TensorFlow 1 has it: y and z may be dead, what is joined is not.
    graph = make_graph(
        dict.fromkeys(["x", "switch", "y", "z", "merge", "w"], 1.0),
        [("switch", 1, ["y"]), ("y", 1, ["z"]), ("z", 1, ["merge"]), ("merge", 1, ["w"])],
    )
    graph = replace(graph, op_types=["Op", "Switch", "Op", "Op", "Merge", "Op"])
    assert ordered_ops(graph).tolist() == [True, False, False, False, True, True]


@given(st.one_of(placed(), large_placed()), st.integers(0, 2**32 - 1))
def test_edges_are_those_of_the_transitive_reduction(case, seed):
    problem, devices = case
    kinds = np.random.default_rng(seed).choice(["Op", "Op", "Const"], problem.graph.num_ops)
    graph = replace(problem.graph, op_types=kinds.tolist())
    problem = PlacementProblem(graph, problem.cluster, problem.op_group)
    schedule = simulate(problem, devices)
    edges = {tuple(edge) for edge in control_edges(problem, schedule).tolist()}
    given_edges = set(
        zip(
            graph.tensor_producer[graph.edge_tensor].tolist(),
            graph.edge_consumer.tolist(),
            strict=True,
        )
    )
    # Reference: chain every device as a whole, and take out what a path says anyway.
    chains = [[] for _ in range(problem.num_devices)]
    for op in starting_order(problem, schedule).tolist():
        if kinds[op] == "Op":
            chains[devices[problem.op_group[op]]].append(op)
    chained = {pair for chain in chains for pair in pairwise(chain)}
    whole = nx.DiGraph()
    whole.add_nodes_from(range(graph.num_ops))
    whole.add_edges_from(given_edges | chained)
    assert nx.is_directed_acyclic_graph(whole)
    assert edges == set(nx.transitive_reduction(whole).edges) - given_edges
    starts = schedule.start
    assert all(starts[one] <= starts[other] for one, other in edges)


def test_what_is_held_back_has_an_edge_on_its_own_device_alone():
    problem = replace(make_pipelined(), order="1f1b")
    held = [("0/b0", "2/f0"), ("1/b0", "3/f0")]

    def edges(second):
        """Of the ops of these names on the second device, all others on the first."""
        where = {name: int(name[2:] in second) for name in problem.graph.op_names}
        devices = np.zeros(problem.num_groups, dtype=np.int64)
        devices[problem.op_group] = list(where.values())
        found = named(problem, devices)
        assert all(where[before] == where[after] for before, after in found)
        return found

    # By layers: the first device goes from the way back of one to the way there of the next.
    assert set(held) <= set(edges({"f1", "b1"}))
    # The way there of the first layer apart: it waits in the simulation, and is only in order.
    apart = edges({"f0"})
    assert not set(held) & set(apart)
    assert {("0/f0", "1/f0"), ("1/f0", "2/f0"), ("2/f0", "3/f0")} <= set(apart)
