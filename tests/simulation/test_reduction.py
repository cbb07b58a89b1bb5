"""The reduction: what is taken out, what is not, and that no schedule tells the difference."""

import numpy as np
import pytest
from hypothesis import given

import placeto
from placeto import PlacementProblem, simulate
from placeto.simulation.reduction import compile_problem
from placeto.simulation.simulate import schedule
from tests.builders import make_cluster, make_graph
from tests.strategies import clusters_of_links, examples, placed

GRAPHS = ("inception_v3", "nmt")


def together(graph, *, num_devices=2, **options):
    """All ops in one group."""
    cluster = make_cluster(num_devices, **options)
    return PlacementProblem(graph, cluster, np.zeros(graph.num_ops, dtype=int))


def removed(problem):
    return [problem.graph.op_names[op] for op in compile_problem(problem).constants]


@given(placed())
def test_the_same_schedule_with_and_without(example):
    problem, devices = example
    devices = problem.check_devices(devices)
    whole = compile_problem(problem, reduce=False)
    assert len(whole.constants) == 0
    assert schedule(problem, compile_problem(problem), devices) == schedule(problem, whole, devices)


@examples(200)
@given(placed(made=clusters_of_links, ranked=True))
def test_the_same_schedule_of_several_parts_and_of_ranks_with_and_without(example):
    problem, devices = example
    whole, devices = compile_problem(problem, reduce=False), problem.check_devices(devices)
    assert schedule(problem, compile_problem(problem), devices) == schedule(problem, whole, devices)


@pytest.mark.parametrize("cluster", ["k80x4", "a100x2-v100x2-cpu", "v100x8-nvlink"])
@pytest.mark.parametrize("grouping", ["auto", "papers", "none"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_bundled_graphs_with_and_without(graph, grouping, cluster):
    problem = PlacementProblem(placeto.load_graph(graph), placeto.load_cluster(cluster), grouping)
    rng = np.random.default_rng(4)
    whole = compile_problem(problem, reduce=False)
    groups, devices = problem.num_groups, problem.num_devices
    for placement in (
        np.zeros(groups, dtype=np.int64),
        np.argsort(problem.group_order) * devices // groups,
        rng.integers(0, devices, groups),
    ):
        assert simulate(problem, placement) == schedule(problem, whole, placement)


@pytest.mark.parametrize("graph", GRAPHS)
def test_much_of_the_bundled_graphs_is_taken_out(graph):
    loaded = placeto.load_graph(graph)
    problem = PlacementProblem(loaded, placeto.load_cluster("k80x4"), "auto")
    reduction = compile_problem(problem)
    whole = compile_problem(problem, reduce=False)
    sources = np.diff(loaded.inputs[0]) == 0
    assert len(reduction.constants) > sources.sum() / 2
    assert len(reduction.compiled.local) < len(whole.compiled.local) * 0.9
    free = (problem.op_seconds == 0).all(axis=1)
    assert free[reduction.constants].all()
    assert sorted([*reduction.kept, *reduction.constants]) == list(range(loaded.num_ops))


@pytest.mark.parametrize("order", [["first", "constant", "work"], ["first", "work", "constant"]])
def test_a_constant_beside_a_later_input_is_taken_out(order):
    # `first` holds the device when the constant's turn comes: it has it at 1 s. `work` comes after
    # it by its number, or because it waits for `first`.
    graph = make_graph(
        {**{name: float(name != "constant") for name in order}, "sum": 1},
        [("first", 1, ["work"]), ("work", 4, ["sum"]), ("constant", 8, ["sum"])],
    )
    problem = together(graph)
    assert removed(problem) == ["constant"]
    schedule = simulate(problem, [0])
    start = dict(zip(graph.op_names, schedule.start, strict=True))
    assert start == {"first": 0, "constant": 1, "work": 1, "sum": 2}
    # From 1 s on: the outputs of `first`, of the constant and of `work`.
    assert schedule.peak_memory.tolist() == [13, 0]


def test_the_bytes_of_a_constant_come_with_its_turn():
    # The 15 temporary bytes of `first` are gone when the constant's 8 come.
    graph = make_graph(
        {"first": 1, "constant": 0, "work": 1, "sum": 1},
        [("first", 1, ["work"]), ("work", 4, ["sum"]), ("constant", 8, ["sum"])],
        temp_bytes={"first": 15},
    )
    assert simulate(together(graph), [0]).peak_memory.tolist() == [16, 0]


@pytest.mark.parametrize(
    ("why", "seconds", "tensors"),
    [
        ("it takes time", {"work": 1, "c": 1, "sum": 1}, [("work", 4, ["sum"]), ("c", 1, ["sum"])]),
        ("it has an input", {"a": 1, "c": 0, "sum": 1}, [("a", 1, ["c"]), ("c", 1, ["sum"])]),
        ("nobody reads it", {"work": 1, "c": 0}, []),
        ("its reader waits for nothing else", {"c": 0, "use": 1}, [("c", 1, ["use"])]),
        (
            "its reader's other input is there before it",
            {"a": 0, "c": 0, "use": 1},
            [("a", 1, ["use"]), ("c", 1, ["use"])],
        ),
    ],
)
def test_what_stays(why, seconds, tensors):
    problem = together(make_graph(seconds, tensors))
    assert "c" not in removed(problem), why


def test_with_ranks_a_constant_stays():
    # It is last in its queue by its rank, so what reads it is, too.
    graph = make_graph(
        {"c": 0, "first": 1, "other": 5, "sum": 1},
        [("first", 1, ["sum"]), ("c", 8, ["sum"])],
    )
    assert removed(together(graph)) == ["c"]
    groups = np.zeros(4, dtype=int)
    ranked = PlacementProblem(graph, make_cluster(2), groups, order=[2, 0, 1, 0])
    assert removed(ranked) == []
    assert simulate(ranked, [0]).start.tolist() == [6, 0, 1, 6]


def test_a_constant_that_another_group_reads_stays():
    graph = make_graph({"work": 1, "c": 0, "sum": 1}, [("work", 4, ["sum"]), ("c", 8, ["sum"])])
    problem = PlacementProblem(graph, make_cluster(2), np.array([0, 1, 0]))
    assert removed(problem) == []


def test_an_identity_cannot_be_taken_out():
    """Behind an op of no duration the queue may have moved on: its reader comes later."""
    rest = [("a", 0, ["other", "third"])]
    with_identity = make_graph(
        {"a": 1, "other": 5, "identity": 0, "b": 1, "third": 5},
        [("a", 1, ["identity"]), ("identity", 1, ["b"]), *rest],
    )
    without = make_graph({"a": 1, "other": 5, "b": 1, "third": 5}, [("a", 1, ["b"]), *rest])
    assert removed(together(with_identity)) == []
    # When the identity has its turn, at 6 s, `third` has been waiting since 1 s.
    assert simulate(together(with_identity), [0]).start.tolist() == [0, 1, 6, 11, 6]
    assert simulate(together(without), [0]).start.tolist() == [0, 1, 6, 7]


def test_an_implied_input_is_not_waited_for():
    graph = make_graph(
        {"a": 1, "b": 1, "c": 1}, [("a", 1, ["b", "c"]), ("b", 1, ["c"]), ("a", 2, ["b"])]
    )
    assert len(compile_problem(together(graph)).compiled.local) == 2
    # Apart, each input comes by a transfer of its own.
    apart = PlacementProblem(graph, make_cluster(2), np.array([0, 1, 2]))
    assert len(compile_problem(apart).compiled.bundled) == 4
