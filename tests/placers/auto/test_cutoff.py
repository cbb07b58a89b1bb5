"""What a simulation cannot end before, against where it ends."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto.placers.annealing.search import placement_costs
from placeto.placers.auto.chain import simulated_cost
from placeto.placers.auto.cutoff import NOT_STARTED, least_step_time, paths_after
from placeto.simulation import simulate_many
from placeto.simulation.kernel import advance
from placeto.simulation.reduction import compiled
from placeto.simulation.state import OPS, begin, buffers, view
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import large_placed


def started(problem, devices):
    """A simulation at its beginning, ready to be looked at on its way."""
    c = compiled(problem).compiled
    s = view(c, *(part[0] for part in buffers(c, 1)))
    begin(c, np.asarray(devices), s)
    s.op_start[:] = NOT_STARTED
    return c, s


def allowed(problem, devices):
    """A placement with every group where it may be."""
    groups = np.arange(problem.num_groups)
    return np.where(problem.allowed[groups, devices], devices, problem.allowed.argmax(axis=1))


def test_paths_behind_ops():
    # a -> b -> d and a -> c -> d, of 1, 2, 3 and 4 s; b in another group than the rest.
    graph = make_graph(
        {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    problem = make_problem(graph, make_cluster(2))
    assert paths_after(problem).tolist() == [7.0, 4.0, 4.0, 0.0]


def test_a_device_has_to_run_what_is_left():
    # Three ops of 2 s on one device, which rests for 1 s after each: 8 s, and never less.
    graph = make_graph({"a": 2.0, "b": 2.0, "c": 2.0})
    problem = make_problem(graph, make_cluster(1, launch_overhead=1.0))
    c, s = started(problem, [0, 0, 0])
    after, left = paths_after(problem), np.empty(1)
    for until in (2, 1):
        advance(c, s, until, OPS)
        assert least_step_time(c, s, after, left) == 8.0


def test_a_path_takes_its_time_behind_what_runs():
    # b starts on the other device at 3 s, when a's 2 bytes are there; c of 5 s is behind it.
    graph = make_graph({"a": 1.0, "b": 4.0, "c": 5.0}, [("a", 2, ["b"]), ("b", 0, ["c"])])
    problem = make_problem(graph, make_cluster(2))
    c, s = started(problem, [0, 1, 1])
    advance(c, s, 2, OPS)
    assert least_step_time(c, s, paths_after(problem), np.empty(2)) == 1.0 + 9.0


@given(case=large_placed(), slices=st.integers(2, 9))
def test_no_step_ends_before_what_is_said_on_the_way(case, slices):
    problem, devices = case
    devices = allowed(problem, devices)
    c, s = started(problem, devices)
    after, left = paths_after(problem), np.empty(problem.num_devices)
    kept, said = len(c.missing), []
    for number in range(slices):
        advance(c, s, kept * (slices - number) // slices, OPS)
        said.append(least_step_time(c, s, after, left))
    advance(c, s, 0, OPS)
    assert all(least <= s.clock[0] * (1 + 1e-9) for least in said)


@given(case=large_placed(), share=st.floats(0.2, 2.0), slices=st.integers(1, 5))
def test_what_is_given_up_is_above_the_limit_and_nothing_else(case, share, slices):
    problem, devices = case
    devices = allowed(problem, devices)
    outcomes = simulate_many(problem, devices[None])
    whole = max(int(problem.group_memory.sum()), 1)
    cost = placement_costs(problem, outcomes.step_time, outcomes.peak_memory, 3.0)[0]
    c, s = started(problem, devices)
    for limit in (cost, cost * share, np.inf):
        found, given_up = simulated_cost(
            c, devices, s, paths_after(problem), np.empty(problem.num_devices),
            problem.memory_limit, 3.0, whole, limit, slices,
        )  # fmt: skip
        if found == np.inf:
            assert limit < cost
        else:
            assert not given_up
            assert found == pytest.approx(cost, rel=1e-12)
            assert found <= limit


def test_a_simulation_is_given_up_halfway():
    # Four ops of 1 s in a row; from the first on it is certain that they take 4 s.
    graph = make_graph(dict.fromkeys("abcd", 1.0), [(a, 0, [b]) for a, b in pairwise("abcd")])
    problem = make_problem(graph, make_cluster(2))
    c, s = started(problem, [0, 0, 0, 0])
    known = (paths_after(problem), np.empty(2), problem.memory_limit, 1.0, 1)
    assert simulated_cost(c, np.zeros(4, np.int64), s, *known, 3.9, 4) == (np.inf, True)
    assert s.clock[0] == 1.0
    assert simulated_cost(c, np.zeros(4, np.int64), s, *known, 3.9, 1) == (np.inf, False)
    assert simulated_cost(c, np.zeros(4, np.int64), s, *known, 4.0, 4) == (4.0, False)
