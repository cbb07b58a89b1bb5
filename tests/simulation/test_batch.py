"""Placements that change one group at a time: bit-equal to simulating each from scratch."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placeto
from placeto import PlacementProblem
from placeto.initial import expert_placement
from placeto.simulation import EvaluatedBatch, batch, simulate_many
from placeto.simulation.moves import NO_SNAPSHOT
from placeto.simulation.queues import DEVICE_ROW, MEMORY
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import placements, problems

COLUMNS = ("step_time", "peak_memory", "group_start", "feasible")


@pytest.fixture(params=[-1.0, 2.0], ids=["snapshots", "from scratch"])
def _worth(request, monkeypatch):
    monkeypatch.setattr(batch, "WORTH", request.param)


def assert_as_from_scratch(evaluated, many):
    np.testing.assert_array_equal(evaluated.devices, many)
    expected = simulate_many(evaluated.problem, many)
    for column in COLUMNS:
        np.testing.assert_array_equal(
            getattr(evaluated.outcomes, column), getattr(expected, column), column
        )


@given(st.data())
@pytest.mark.usefixtures("_worth")
@pytest.mark.parametrize("snapshots", [1, 7])
def test_random_moves(snapshots, data):
    problem = data.draw(problems(max_ops=40))
    rows = data.draw(st.integers(1, 3))
    many = np.array([data.draw(placements(problem)) for _ in range(rows)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "SNAPSHOTS", snapshots)
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


@pytest.mark.usefixtures("_worth")
@pytest.mark.parametrize("grouping", ["auto", "none"])
@pytest.mark.parametrize("graph", ["inception_v3", "nmt"])
def test_moves_of_bundled_graphs(graph, grouping):
    problem = PlacementProblem(placeto.load_graph(graph), placeto.load_cluster("k80x4"), grouping)
    rng = np.random.default_rng(0)
    rows = np.arange(3)
    evaluated = EvaluatedBatch(problem, 3)
    many = np.stack(
        [
            np.zeros(problem.num_groups, dtype=np.int64),
            expert_placement(problem),
            rng.integers(0, 4, problem.num_groups),
        ]
    )
    evaluated.place(rows, many)
    for _ in range(15):
        groups, targets = rng.integers(0, problem.num_groups, 3), rng.integers(0, 4, 3)
        many[rows, groups] = targets
        evaluated.move(rows, groups, targets)
        assert_as_from_scratch(evaluated, many)


def chain(length):
    names = [f"op{number}" for number in range(length)]
    return make_problem(
        make_graph(
            dict.fromkeys(names, 1.0),
            [(a, 1, [b]) for a, b in pairwise(names)],
        ),
        make_cluster(2),
    )


def test_a_late_group_of_a_chain_is_simulated_from_the_last_snapshot():
    problem = chain(100)
    evaluated = EvaluatedBatch(problem, 1)
    row = np.array([0])
    evaluated.place(row, np.zeros((1, 100), dtype=np.int64))
    simulations = evaluated._simulations
    assert evaluated.snapshots == batch.SNAPSHOTS
    # Groups of a chain are touched one after the other: on average half of it stays.
    evaluated.move(row, np.array([50]), np.array([1]))
    taken = simulations._taken[0].copy()
    assert (taken != NO_SNAPSHOT).all()
    assert (np.diff(taken) > 0).all()
    # What a snapshot holds is not computed again: a mark in it ends up in the outcome.
    simulations._snapshots[1][0, -1, [MEMORY, DEVICE_ROW + MEMORY]] += 1000
    evaluated.move(row, np.array([99]), np.array([1]))
    assert evaluated.outcomes.peak_memory[0, 0] >= 1000
    evaluated.move(row, np.array([0]), np.array([1]))
    assert evaluated.outcomes.peak_memory[0].max() < 1000


def test_memory_of_a_group_moves_with_it_in_snapshots():
    names = [f"op{number}" for number in range(100)]
    graph = make_graph(
        dict.fromkeys(names, 1.0),
        [(a, 1, [b]) for a, b in pairwise(names)],
        param_bytes={name: 10 + number for number, name in enumerate(names)},
    )
    evaluated = EvaluatedBatch(make_problem(graph, make_cluster(3)), 1)
    row, many = np.array([0]), np.zeros((1, 100), dtype=np.int64)
    evaluated.place(row, many)
    for group, device in ((50, 1), (99, 1), (97, 2), (99, 2), (98, 1), (98, 0)):
        many[0, group] = device
        evaluated.move(row, np.array([group]), np.array([device]))
        assert_as_from_scratch(evaluated, many)


def test_snapshots_are_left_alone_where_every_group_starts_early():
    graph = make_graph({f"op{number}": 1.0 for number in range(20)})
    evaluated = EvaluatedBatch(make_problem(graph, make_cluster(2)), 1)
    evaluated.place(np.array([0]), np.zeros((1, 20), dtype=np.int64))
    assert evaluated.snapshots == 0


def test_the_device_that_a_group_is_on_costs_nothing():
    problem = chain(3)
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
