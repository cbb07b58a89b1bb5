import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_cluster, load_graph, simulate
from placeto.bounds.queues import queue_pairs
from tests.builders import make_cluster, make_graph
from tests.strategies import clusters_of_links, examples, large_placed, placed

NAMES = {"y": 1.0, "w": 5.0, "x": 1.0, "z": 1.0}


def pairs(graph, groups):
    problem = PlacementProblem(graph, make_cluster(2), np.array(groups))
    names = graph.op_names
    found = queue_pairs(problem, problem.allowed)
    return {(names[p], names[q]) for p, q in zip(*found, strict=True)}


@examples(300)
@given(example=st.one_of(placed(30), placed(30, made=clusters_of_links), large_placed(80)))
def test_whatever_the_placement_the_first_of_a_pair_is_over_when_the_second_starts(example):
    problem, devices = example
    allowed = problem.allowed
    devices = np.where(
        allowed[np.arange(problem.num_groups), devices], devices, allowed.argmax(axis=1)
    )
    first, second = queue_pairs(problem, allowed)
    assert (problem.op_group[first] == problem.op_group[second]).all()
    schedule = simulate(problem, devices)
    assert (schedule.finish[first] <= schedule.start[second]).all()


def test_the_lower_number_first_of_two_that_read_the_same():
    graph = make_graph(NAMES, [("y", 1, ["w", "x"])])
    assert pairs(graph, [0, 1, 1, 2]) == {("w", "x")}
    assert pairs(graph, [0, 1, 2, 3]) == set()


def test_what_is_ready_with_an_op_comes_before_what_waits_for_it():
    graph = make_graph({"y": 1.0, "x": 1.0, "w": 5.0, "z": 1.0}, [("y", 1, "xw"), ("x", 1, "z")])
    assert pairs(graph, [0, 1, 1, 1]) == {("x", "w"), ("w", "z")}


def test_not_if_the_op_between_takes_no_time():
    # z is ready with w, and has the lower number.
    graph = make_graph({"y": 1.0, "x": 0.0, "z": 1.0, "w": 5.0}, [("y", 1, "xw"), ("x", 1, "z")])
    assert pairs(graph, [0, 1, 1, 1]) == {("x", "w")}


def test_not_if_an_input_may_arrive_later():
    graph = make_graph(NAMES, [("y", 1, ["w", "x"]), ("z", 1, ["w"])])
    assert pairs(graph, [0, 1, 1, 2]) == set()


def test_an_input_that_an_earlier_op_of_the_group_read_is_there():
    # f reads the activation a before y; w reads it after.
    graph = make_graph(
        {"a": 1.0, "f": 1.0, "y": 1.0, "w": 5.0, "x": 1.0},
        [("a", 1, ["f", "w"]), ("f", 1, ["y"]), ("y", 1, ["w", "x"])],
    )
    assert ("w", "x") in pairs(graph, [0, 1, 2, 1, 1])
    assert ("w", "x") not in pairs(graph, [0, 3, 2, 1, 1])


def test_a_constant_is_there_from_the_first_late_op_on():
    ops = {"y": 1.0, "f": 1.0, "m": 1.0, "w": 5.0, "x": 1.0, "constant": 0.0}
    edges = [("y", 1, ["f"]), ("f", 1, ["m"]), ("m", 1, ["w", "x"]), ("constant", 1, ["w"])]
    # f is ready after 0, so the constant is served before it, and f is over before m.
    assert ("w", "x") in pairs(make_graph(ops, edges), [0, 1, 2, 1, 1, 1])
    # Without f in the group nothing says when its turn comes.
    assert ("w", "x") not in pairs(make_graph(ops, edges), [0, 2, 2, 1, 1, 1])


def test_bundled_steps_obey_their_pairs():
    rng = np.random.default_rng(0)
    for name in ("inception_v3", "nmt"):
        problem = PlacementProblem(load_graph(name), load_cluster("k80x4"))
        first, second = queue_pairs(problem, problem.allowed)
        assert len(first) > 1000
        schedule = simulate(problem, rng.integers(0, 4, problem.num_groups))
        assert (schedule.finish[first] <= schedule.start[second]).all()
