from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from placeto import Cluster, ComputationGraph, Device, PlacementProblem, PlacetoError
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import problems

# a feeds b and c with one tensor of 4 bytes, b feeds d with 2, c feeds d with 1 and with 8.
DIAMOND = make_graph(
    {"a": 1, "b": 2, "c": 3, "d": 4},
    [("a", 4, ["b", "c"]), ("b", 2, ["d"]), ("c", 1, ["d"]), ("c", 8, ["d"]), ("d", 16, [])],
    param_bytes={"a": 100, "d": 7},
)


def two_kinds(slow: list[float]) -> tuple[ComputationGraph, Cluster]:
    graph = ComputationGraph(
        "g", ["a", "b"], ["A", "B"], {"fast": [1, 2], "slow": slow}, [0], [1], [0], [1]
    )
    cluster = Cluster("c", (Device("d0", "slow", 1),))
    return graph, cluster


def test_missing_kind_lists_the_columns() -> None:
    graph, _ = two_kinds([1, 1])
    cluster = Cluster("c", (Device("d0", "h100", 1),))
    with pytest.raises(PlacetoError) as caught:
        PlacementProblem(graph, cluster)
    assert str(caught.value) == (
        "graph 'g' has no op_seconds for device kind 'h100' of cluster 'c'; it has: fast, slow; "
        "add a column by extracting the graph again, or by calibrating on such a device"
    )


def test_allowed_and_pins() -> None:
    graph, _ = two_kinds([1, np.inf])
    channels = make_cluster(2, shared=True).channels
    cluster = Cluster("c", (Device("d0", "fast", 1), Device("d1", "slow", 1)), channels)
    assert PlacementProblem(graph, cluster, "none").allowed.tolist() == [
        [True, True],
        [True, False],
    ]
    assert PlacementProblem(graph, cluster, [0, 0]).allowed.tolist() == [[True, False]]
    pinned = PlacementProblem(graph, cluster, "none", pins={0: 1})
    assert pinned.allowed.tolist() == [[False, True], [True, False]]
    for pins, message in (
        ({2: 0}, "pin 2=0: there is no group 2; groups go from 0 to 1"),
        ({-1: 0}, "pin -1=0: there is no group -1"),
        ({0: 2}, "pin 0=2: there is no device 2; devices go from 0 to 1"),
        ({0: "d1"}, "pin 0='d1': expected the numbers of a group and a device"),
        ({"a": 1}, "pin 'a'=1: expected the numbers"),
        ({0: 0.5}, "pin 0=0.5: expected the numbers"),
        ({1: 1}, "pin 1=1: device 'd1' cannot run every op of group 1"),
    ):
        with pytest.raises(PlacetoError, match=message):
            PlacementProblem(graph, cluster, "none", pins=pins)


def test_group_arrays_by_hand() -> None:
    # Groups: 0 = {a}, 1 = {b, c}, 2 = {d}. a's tensor reaches group 1 once, though twice read.
    problem = PlacementProblem(DIAMOND, make_cluster(2), [0, 1, 1, 2])
    source, target, size = problem.group_edges
    assert list(zip(source.tolist(), target.tolist(), size.tolist(), strict=True)) == [
        (0, 1, 4),
        (1, 2, 11),
    ]
    assert problem.group_seconds.tolist() == [[1, 1], [5, 5], [4, 4]]
    assert problem.group_memory.tolist() == [104, 11, 23]
    assert problem.group_names == ("a", "c", "d")
    assert problem.group_order.tolist() == [0, 1, 2]
    start, ops = problem.group_ops
    assert [ops[start[g] : start[g + 1]].tolist() for g in range(3)] == [[0], [1, 2], [3]]


def test_group_order_with_a_cycle() -> None:
    # a and d share a group: the group graph is a cycle, so groups go by their first op.
    problem = PlacementProblem(DIAMOND, make_cluster(2), [1, 2, 0, 1])
    assert problem.group_order.tolist() == [1, 2, 0]


def test_ranks_by_hand() -> None:
    def ranks(order: object) -> object:
        found = PlacementProblem(DIAMOND, make_cluster(2), "none", order=order).ranks
        return found if found is None else found.tolist()

    assert ranks("fifo") is None
    # Longest paths to the end: 1 + 3 + 4, 2 + 4, 3 + 4 and 4.
    assert ranks("critical-path") == [0, 2, 1, 3]
    assert ranks([0.5, -1, 0.5, np.inf]) == [1, 0, 1, 2]
    assert ranks(np.array([9, 9, 9, 9])) == [0, 0, 0, 0]


def test_the_critical_path_is_over_the_fastest_devices() -> None:
    graph, _ = two_kinds([1, 2])
    graph = replace(
        graph, op_seconds={"fast": [5, 1], "slow": [6, np.inf]}, edge_tensor=[], edge_consumer=[]
    )
    channels = make_cluster(2, shared=True).channels
    cluster = Cluster("c", (Device("d0", "slow", 1), Device("d1", "fast", 1)), channels)
    ranks = PlacementProblem(graph, cluster, "none", order="critical-path").ranks
    assert ranks is not None
    assert ranks.tolist() == [0, 1]


def test_orders_of_microbatches() -> None:
    # A read of weights, two microbatches forward and backward, an update.
    graph = make_graph(dict.fromkeys(["read", "f0", "b0", "f1", "b1", "update"], 1.0))
    graph = replace(
        graph, microbatch=[-1, 0, 0, 1, 1, -1], copy_of=[-1, -1, -1, 1, 2, -1],
        phase=[0, 0, 1, 0, 1, 2],
    )  # fmt: skip

    def first_to_last(order: str) -> list[str]:
        ranks = PlacementProblem(graph, make_cluster(2), "none", order=order).ranks
        assert ranks is not None
        assert sorted(ranks.tolist()) == [*range(6)]
        return [graph.op_names[op] for op in np.argsort(ranks)]

    assert first_to_last("gpipe") == ["read", "f0", "f1", "b0", "b1", "update"]
    assert first_to_last("1f1b") == ["b0", "b1", "read", "f0", "f1", "update"]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            "random",
            "order is 'random', expected fifo, gpipe, 1f1b, eager-1f1b, critical-path, or (num",
        ),
        ("1f1b", "order is '1f1b', which goes by microbatches, and the graph is of one; expected"),
        ("gpipe", "order is 'gpipe', which goes by microbatches"),
        ([1, 2, 3], "order has shape (3,), expected (4,): one rank an op"),
        (3, "order has shape (), expected (4,): one rank an op"),
        ([[1], [2, 3]], "order is not an array of ranks"),
        ([True] * 4, "order has bool values, expected numbers"),
        (["a", "b", "c", "d"], "order has <U1 values, expected numbers"),
        ([0, 1, np.nan, 2], "order gives op 2 the rank nan"),
    ],
)
def test_what_is_no_order(order: object, message: str) -> None:
    with pytest.raises(PlacetoError) as caught:
        PlacementProblem(DIAMOND, make_cluster(2), "none", order=order)
    assert f"graph 'by hand': {message}" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(problems(max_ops=25))
def test_group_arrays(problem: PlacementProblem) -> None:
    graph = problem.graph
    expected: dict[tuple[int, int], dict[int, int]] = {}
    for tensor, consumer in zip(graph.edge_tensor.tolist(), graph.edge_consumer, strict=True):
        source = int(problem.op_group[graph.tensor_producer[tensor]])
        target = int(problem.op_group[consumer])
        if source != target:
            expected.setdefault((source, target), {})[tensor] = int(graph.tensor_bytes[tensor])
    rows = zip(*(column.tolist() for column in problem.group_edges), strict=True)
    assert [((s, t), b) for s, t, b in rows] == [
        (pair, sum(tensors.values())) for pair, tensors in sorted(expected.items())
    ]
    order = problem.group_order.tolist()
    assert sorted(order) == list(range(problem.num_groups))
    position = {group: place for place, group in enumerate(order)}
    if not has_cycle(set(expected)):
        assert all(position[source] < position[target] for source, target in expected)
    for group in range(problem.num_groups):
        ops = problem.op_group == group
        allowed = np.isfinite(problem.op_seconds[ops]).all(axis=0)
        assert problem.allowed[group].tolist() == allowed.tolist()
        seconds = problem.op_seconds[ops].sum(axis=0)
        assert problem.group_seconds[group].tolist() == pytest.approx(seconds.tolist())
        members = np.flatnonzero(ops).tolist()
        longest = np.where(np.isfinite(problem.op_seconds), problem.op_seconds, 0).max(axis=1)
        name = graph.op_names[max(members, key=longest.__getitem__)]
        assert problem.group_names[group] == name


def has_cycle(edges: set[tuple[int, int]]) -> bool:
    while edges:
        inner = {(s, t) for s, t in edges if any(s == other for _, other in edges)}
        if inner == edges:
            return True
        edges = inner
    return False


def test_too_many_groups_to_relate_each_to_each() -> None:
    names = [f"op{op}" for op in range(20_001)]
    problem = make_problem(make_graph(dict.fromkeys(names, 1.0)), make_cluster(2))
    with pytest.raises(PlacetoError) as caught:
        _ = problem.ancestors
    assert str(caught.value) == (
        "graph 'by hand': 20,001 groups are too many to relate each to each, at most 20,000 are "
        "possible; use a coarser grouping, such as auto"
    )
