"""What holds for every placer that trains an agent."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_cluster, load_graph, place, simulate
from placeto.placers import PLACERS, Incumbent, learned
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.test_every_placer import pinned
from tests.strategies import examples

AT_ONCE = ["colocrl", "hierarchical"]
METHODS = [*AT_ONCE, "placeto-2019"]


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 24)


@given(problem=pinned(), method=st.sampled_from(METHODS))
@examples(15)
def test_pins_and_kernels_are_obeyed(problem, method):
    placement = place(problem, method, budget_seconds=40, clock=itertools.count().__next__)
    assert problem.allowed[np.arange(problem.num_groups), placement.devices].all()
    for group, device in problem.pins.items():
        assert placement.devices[group] == device
    schedule = simulate(problem, placement.devices)
    assert placement.step_time == schedule.step_time
    assert placement.feasible == schedule.feasible


def counted(problem, method, seed, ticks):
    """What a placer finds by a clock that goes on by a second with every look at it."""
    incumbent = Incumbent(problem, ticks, clock=itertools.count().__next__)
    placer = PLACERS[method]
    placer.run(incumbent, np.random.default_rng(seed), placer.config.default)
    return incumbent


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_and_the_same_clock_give_the_same_placement(nmt, method):
    found = []
    for seed in (0, 0, 1):
        incumbent = counted(nmt, method, seed, 60)
        found.append((incumbent.devices.tolist(), incumbent.step_time, incumbent.evaluations))
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_too_short_for_anything_has_a_placement(nmt, method):
    placement = place(nmt, method, budget_seconds=1e-9)
    assert placement.evaluations > 0
    assert placement.devices.shape == (24,)


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_kept(method):
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"), 500)
    placement = place(problem, method, budget_seconds=1)
    assert placement.wall_seconds < 1 + 2
    assert placement.evaluations > 0


@pytest.mark.parametrize("method", METHODS)
def test_what_fits_nowhere_at_random_is_repaired(method):
    # 40 ops of one unit each, and room for 10 of them on each device.
    names = [f"op{op}" for op in range(40)]
    graph = make_graph(dict.fromkeys(names, 1.0), param_bytes=dict.fromkeys(names, 10))
    problem = make_problem(graph, make_cluster(4, memory=100))
    assert place(problem, method, budget_seconds=0.3).feasible


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("calls", [1, 7])
def test_an_interrupt_leaves_the_best_placement_so_far(nmt, method, monkeypatch, calls):
    best = []

    def interrupted(problem, many, original=learned.simulate_many):
        outcomes = original(problem, many)
        if len(best) == calls:
            raise KeyboardInterrupt
        best.append(outcomes.step_time[outcomes.feasible].min(initial=np.inf))
        return outcomes

    monkeypatch.setattr(learned, "simulate_many", interrupted)
    placement = place(nmt, method, budget_seconds=60)
    assert placement.interrupted
    offered_first = ("single", "expert", "etf") if method == "placeto-2019" else ()
    obvious = [place(nmt, other).step_time for other in offered_first]
    assert placement.step_time == min(*best, np.inf, *obvious)
