"""Favourite children by hand, and against all choices there are."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given

from placeto.heuristics.baechi import favourite_children, heaviest_children
from tests.builders import make_cluster, make_graph, make_problem
from tests.heuristics.contention_free import Tasks, tasks


def problem_of(seconds, tensors):
    return make_problem(make_graph(seconds, tensors), make_cluster(3))


def test_the_child_on_the_critical_path_is_the_favourite():
    # After a, b and then d take 10 s, c takes 1 s.
    problem = problem_of(
        {"a": 3.0, "b": 5.0, "c": 1.0, "d": 5.0}, [("a", 2, ["b", "c"]), ("b", 2, ["d"])]
    )
    assert favourite_children(problem, 10.0).tolist() == [1, 3, -1, -1]


def test_a_child_has_one_favourite_parent():
    # Of a and b only one can be with c, better the later one.
    problem = problem_of({"a": 3.0, "b": 5.0, "c": 1.0}, [("a", 4, ["c"]), ("b", 4, ["c"])])
    assert favourite_children(problem, 10.0).tolist() == [-1, 2, -1]


def test_nothing_is_gained_where_transfers_take_no_time():
    problem = problem_of({"a": 3.0, "b": 5.0}, [("a", 0, ["b"])])
    assert favourite_children(problem, 10.0).tolist() == [-1, -1]


@pytest.mark.parametrize("children", [lambda p: favourite_children(p, 10.0), heaviest_children])
@given(drawn=tasks(max_tasks=12, sizes=(0, 9)))
def test_one_favourite_child_and_one_favourite_parent(children, drawn):
    favourite = children(drawn.problem())
    chosen = [(parent, child) for parent, child in enumerate(favourite.tolist()) if child >= 0]
    assert len({child for _, child in chosen}) == len(chosen)
    assert all(drawn.edges[edge] > 0 for edge in chosen)


@given(drawn=tasks(max_tasks=6, seconds=(3, 6), sizes=(0, 3)))
def test_within_four_thirds_of_the_best_choice_on_unlimited_devices(drawn):
    # Hanen & Munier (1995): (2 + 2 rho)/(2 + rho), at most 4/3 for rho <= 1.
    assume(len(drawn.edges) <= 7)
    favourite = favourite_children(replace(drawn, devices=2).problem(), 10.0)
    rho = max(drawn.edges.values(), default=0) / min(drawn.seconds)
    chosen = {(parent, child) for parent, child in enumerate(favourite.tolist()) if child >= 0}
    best = min(
        length(drawn, set(subset))
        for count in range(len(drawn.edges) + 1)
        for subset in itertools.combinations(drawn.edges, count)
        if len({i for i, _ in subset}) == len({j for _, j in subset}) == count
    )
    assert length(drawn, chosen) <= (2 + 2 * rho) / (2 + rho) * best + 1e-9


def length(drawn: Tasks, together: set[tuple[int, int]]) -> int:
    """Seconds if there are devices for all and only such edges take no time."""
    ends = list(drawn.seconds)
    for (i, j), size in sorted(drawn.edges.items(), key=lambda edge: edge[0][1]):
        transfer = 0 if (i, j) in together else size
        ends[j] = max(ends[j], ends[i] + transfer + drawn.seconds[j])
    return max(ends)


def test_the_heaviest_edges_in_turn():
    problem = problem_of(
        {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0},
        [("a", 5, ["c"]), ("a", 4, ["d"]), ("b", 6, ["c"]), ("b", 1, ["d"])],
    )
    assert heaviest_children(problem).tolist() == [3, 2, -1, -1]
