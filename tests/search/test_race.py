"""Simulations that are given up on their way, against where they would end."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto.objective import search_costs
from placeto.search import chains
from placeto.search.chains import LOOKS
from placeto.simulation import simulate_many
from placeto.simulation.reduction import compiled
from placeto.simulation.state import buffers, state_in
from tests.builders import make_cluster, make_graph, make_problem
from tests.compiled import from_python
from tests.strategies import clusters_of_links, large_placed, placed

raced_cost = from_python(chains.raced_cost)

NO_PACE = np.full(LOOKS, np.inf)


def race(problem, devices, limit=np.inf, pace=NO_PACE, behind=0.0, scale=3.0):
    """What `raced_cost` says, and when it looked; NaN where it did not get."""
    c = compiled(problem).compiled
    s = state_in(c, buffers(c, 1)[0])
    whole = max(int(problem.group_memory.sum()), 1)
    clocks = np.full(LOOKS, np.nan)
    cost = raced_cost(
        c, np.asarray(devices), s, problem.memory_limit, scale, whole, limit, pace, behind, clocks
    )
    return cost, clocks


def row_of_ops(**columns):
    """Ten ops of 1 s, each after the one before it; devices have 10 bytes."""
    edges = [(a, 0, [b]) for a, b in pairwise("abcdefghij")]
    graph = make_graph(dict.fromkeys("abcdefghij", 1.0), edges, **columns)
    return make_problem(graph, make_cluster(2, memory=10))


def allowed(problem, devices):
    """A placement with every group where it may be."""
    groups = np.arange(problem.num_groups)
    return np.where(problem.allowed[groups, devices], devices, problem.allowed.argmax(axis=1))


@given(case=large_placed(), share=st.floats(0.2, 2.0))
def test_what_races_nothing_is_given_up_only_above_the_limit(case, share):
    problem, devices = case
    devices = allowed(problem, devices)
    outcomes = simulate_many(problem, devices[None])
    cost = search_costs(problem, outcomes.step_time, outcomes.peak_memory, 3.0)[0]
    for limit in (cost * (1 + 1e-9), cost * share, np.inf):
        found, _ = race(problem, devices, limit)
        if found == np.inf:
            assert limit < cost
        else:
            assert found == pytest.approx(cost, rel=1e-12)
            assert found <= limit


@given(case=placed(made=clusters_of_links, ranked=True))
def test_a_race_of_several_parts_and_of_ranks_ends_as_if_none_had_looked(case):
    problem, devices = case
    devices = allowed(problem, devices)
    outcomes = simulate_many(problem, devices[None])
    cost, clocks = race(problem, devices)
    assert cost == search_costs(problem, outcomes.step_time, outcomes.peak_memory, 3.0)[0]
    assert (np.diff(clocks) >= 0).all()
    assert clocks[-1] <= outcomes.step_time[0]
    assert race(problem, devices, pace=clocks)[0] == cost


@given(case=large_placed())
def test_a_placement_keeps_up_with_itself(case):
    problem, devices = case
    devices = allowed(problem, devices)
    cost, clocks = race(problem, devices)
    assert (np.diff(clocks) >= 0).all()
    assert race(problem, devices, pace=clocks)[0] == cost


def test_what_is_too_far_behind_is_given_up_there():
    pace = np.array([1.0, 2.0, 2.5, 2.5, 5.0, 6.0, 7.0, 8.0, 9.0])
    assert race(row_of_ops(), [0] * 10, pace=pace, behind=1.5)[0] == 10.0
    cost, clocks = race(row_of_ops(), [0] * 10, pace=pace, behind=1.4)
    assert cost == np.inf
    assert clocks[3] == 4.0
    assert np.isnan(clocks[4:]).all()


def test_memory_over_the_limit_counts_on_the_way():
    problem = row_of_ops(param_bytes={"a": 11})
    cost, clocks = race(problem, [0] * 10, limit=20.0, scale=100.0)
    assert cost == np.inf
    assert clocks[0] == 1.0
    assert np.isnan(clocks[1:]).all()
    assert race(problem, [0] * 10, scale=100.0)[0] > 20.0
