"""Placements that change one group at a time: bit-equal to simulating each from scratch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.simulation import EvaluatedBatch, simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import placements, problems

COLUMNS = ("step_time", "peak_memory", "group_start", "feasible")


def assert_as_from_scratch(evaluated, many):
    np.testing.assert_array_equal(evaluated.devices, many)
    expected = simulate_many(evaluated.problem, many)
    for column in COLUMNS:
        np.testing.assert_array_equal(
            getattr(evaluated.outcomes, column), getattr(expected, column), column
        )


@given(st.data())
def test_random_moves(data):
    problem = data.draw(problems(max_ops=40))
    rows = data.draw(st.integers(1, 3))
    many = np.array([data.draw(placements(problem)) for _ in range(rows)])
    evaluated = EvaluatedBatch(problem, rows)
    evaluated.place(np.arange(rows), many)
    assert_as_from_scratch(evaluated, many)
    for _ in range(data.draw(st.integers(1, 8))):
        some = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))
        groups = np.array([data.draw(st.integers(0, problem.num_groups - 1)) for _ in some])
        targets = np.array([data.draw(st.integers(0, problem.num_devices - 1)) for _ in some])
        groups, targets = groups.astype(np.int64), targets.astype(np.int64)
        before = many.copy()
        many[some, groups] = targets
        changed = evaluated.move(some, groups, targets)
        assert changed.tolist() == np.flatnonzero((before != many).any(axis=1)).tolist()
        assert_as_from_scratch(evaluated, many)


def test_the_device_that_a_group_is_on_costs_nothing():
    problem = make_problem(
        make_graph(dict.fromkeys("abc", 1.0), [("a", 1, ["b"]), ("b", 1, ["c"])]), make_cluster(2)
    )
    asked = []

    def count(problem, many):
        asked.append(many.copy())
        return simulate_many(problem, many)

    evaluated = EvaluatedBatch(problem, 2, count)
    rows = np.array([0, 1])
    evaluated.place(rows, np.zeros((2, 3), dtype=np.int64))
    changed = evaluated.move(rows, np.array([1, 2]), np.array([0, 1]))
    assert changed.tolist() == [1]
    assert [many.tolist() for many in asked] == [[[0, 0, 0], [0, 0, 0]], [[0, 0, 1]]]
    assert_as_from_scratch(evaluated, np.array([[0, 0, 0], [0, 0, 1]]))
