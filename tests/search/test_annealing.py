"""The search on problems whose best placement is known, and what holds on every problem."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeto import PlacementProblem, PlacetoError, load_cluster, load_graph, place, simulate
from placeto.envs import generator
from placeto.objective import search_costs
from placeto.placers import PLACERS, Incumbent
from placeto.search import annealing as search
from placeto.search import incumbent as base
from placeto.search.annealing import accepted, anneal
from placeto.search.settings import AnnealingConfig
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import pinned, problems

METHODS = ("single", "expert", "etf", "heft")


def annealed(problem, evaluations, seed=0, **settings):
    incumbent = Incumbent(problem, budget_seconds=1e9)
    config = AnnealingConfig(max_evaluations=evaluations, **settings)
    anneal(incumbent, np.random.default_rng(seed), config)
    return incumbent


@pytest.fixture(scope="module")
def nmt():
    return PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 32)


def test_the_cheapest_of_those_that_metropolis_accepts():
    # At 2 s, rises of 2 and 4 s are accepted by draws below 1/e = 0.37 and 1/e² = 0.14.
    rises = np.array([4.0, 2.0, 0.0])
    assert accepted(rises, 2.0, np.array([0.13, 0.36, 0.99])) == 2
    assert accepted(rises[:2], 2.0, np.array([0.13, 0.36])) == 1
    assert accepted(rises[:2], 2.0, np.array([0.13, 0.37])) == 0
    assert accepted(rises[:2], 2.0, np.array([0.14, 0.37])) is None
    assert accepted(np.array([-1.0, -3.0, -2.0]), 1e-12, np.full(3, 0.999)) == 1


def test_memory_over_the_limit_costs_more_than_any_time_it_saves():
    # Two ops of 1 s and 6 bytes each, 12 in all; together they are 2 bytes over.
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 6, "b": 6})
    problem = make_problem(graph, make_cluster(2, memory=10))
    outcomes = base.simulate_many(problem, [[0, 0], [0, 1]])
    costs = search_costs(problem, outcomes.step_time, outcomes.peak_memory, 3.0)
    assert costs.tolist() == pytest.approx([2.0 + 3.0 * (0.1 + 4.0 * 2 / 12), 1.0])


def test_the_temperature_falls_geometrically_in_each_annealing():
    config = AnnealingConfig(
        restarts=2,
        restart_share=0.25,
        first_temperature=0.04,
        refining_temperature=0.01,
        last_temperature=0.0001,
    )
    expected = {
        0.0: (0, 0.04),
        0.125: (0, 0.002),
        0.2499999: (0, 0.0001),
        0.25: (1, 0.04),
        0.375: (1, 0.002),
        0.5: (2, 0.01),
        0.75: (2, 0.001),
        0.9999999: (2, 0.0001),
    }
    for spent, (number, temperature) in expected.items():
        assert config.stage(spent) == (number, pytest.approx(temperature, rel=1e-4))
    assert AnnealingConfig(restarts=0).stage(0.7)[0] == 0


def test_restarts_are_from_the_best_start_and_the_last_from_the_best_found(nmt, monkeypatch):
    seen = []

    def kept(space, present, candidates, rng, original=search.propose_many):
        seen.append(present.tolist())
        original(space, present, candidates, rng)
        assert present.tolist() == seen[-1]

    monkeypatch.setattr(search, "propose_many", kept)
    best = {}
    original = Incumbent.offer_many

    def offered(incumbent, many):
        best[len(seen)] = None if incumbent.devices is None else incumbent.devices.tolist()
        return original(incumbent, many)

    monkeypatch.setattr(Incumbent, "offer_many", offered)
    annealed(nmt, 1000, restarts=2, restart_share=0.25)
    # After 8 starts, in batches of 8: of 1000, 250 are exceeded before batch 31, 500 before 62.
    assert seen[31] == seen[0] != seen[30]
    assert seen[62] == best[63] != seen[61]


def test_of_fewer_groups_the_search_is_hotter(monkeypatch):
    # 50 groups on one device take 50 s: the temperature is 0.02 of that, twice.
    temperatures = []

    def kept(rises, temperature, draws):
        temperatures.append(temperature)

    monkeypatch.setattr(search, "accepted", kept)
    names = [f"op{number}" for number in range(50)]
    edges = [(a, 1, [b]) for a, b in itertools.pairwise(names)]
    problem = make_problem(make_graph(dict.fromkeys(names, 1.0), edges), make_cluster(2))
    annealed(problem, 100, restarts=0, refining_temperature=0.02, last_temperature=0.02)
    assert temperatures[0] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_evaluations": 0}, "max_evaluations is 0, expected 1 or more"),
        ({"candidates": 0}, "candidates is 0, expected 1 or more"),
        ({"last_temperature": 0.0}, "temperatures fall from .* to 0.0, expected positive"),
        ({"first_temperature": 0.0001}, "temperatures fall from 0.0001 and .* do not rise"),
        ({"restarts": -1}, "-1 restarts of 0.2 of the budget each, expected 0 or more"),
        ({"restart_share": 0.0}, "3 restarts of 0.0 of the budget each"),
        ({"restarts": 5}, "5 restarts of 0.2 of the budget each, expected .* leave some"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(PlacetoError, match=message):
        AnnealingConfig(**settings)


@given(problem=problems(max_ops=6))
def test_finds_the_best_of_all_placements_of_a_small_problem(problem):
    devices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    best = Incumbent(problem, 1e9)
    best.offer_many(list(itertools.product(*devices)))
    found = annealed(problem, 1500)
    assert found.feasible == best.feasible
    if best.feasible:
        assert found.step_time == best.step_time


@pytest.mark.parametrize(
    ("toy", "best"),
    [
        (generator.chain, 40e-3),
        (generator.fork, 30e-3),
        (generator.diamond, 41e-3),
        (generator.unequal, 16e-3),
    ],
)
def test_finds_the_best_placement_of_every_toy(toy, best):
    assert annealed(toy(), 300).step_time == pytest.approx(best)


@given(problem=pinned(), evaluations=st.sampled_from([1, 40, 200]))
def test_obeys_what_is_allowed_and_is_never_worse_than_a_start(problem, evaluations):
    incumbent = annealed(problem, evaluations)
    assert problem.allowed[np.arange(problem.num_groups), incumbent.devices].all()
    schedule = simulate(problem, incumbent.devices)
    assert incumbent.step_time == schedule.step_time
    assert incumbent.feasible == schedule.feasible
    for method in METHODS:
        start = place(problem, method)
        assert incumbent.feasible >= start.feasible
        if incumbent.feasible and start.feasible:
            assert incumbent.step_time <= start.step_time


def test_ends_when_the_budget_is_spent_but_never_without_a_placement(nmt):
    placement = place(nmt, "annealing", budget_seconds=1e-9)
    assert placement.evaluations == nmt.num_devices
    assert placement.step_time == place(nmt, "single").step_time
    assert annealed(nmt, 500).evaluations in range(500, 508)


@pytest.mark.parametrize(
    "problem",
    [
        make_problem(make_graph({"a": 1.0}), make_cluster(3)),
        make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(1)),
        PlacementProblem(
            make_graph({"a": 1.0, "b": 1.0}), make_cluster(2), "none", pins={0: 1, 1: 0}
        ),
    ],
    ids=["one group", "one device", "all pinned"],
)
def test_ends_at_once_where_nothing_is_left_to_choose(problem):
    # It would not end otherwise.
    assert place(problem, "annealing", budget_seconds=1e9).evaluations < 20


def test_the_seed_decides_and_the_number_of_threads_does_not(nmt):
    threads = numba.get_num_threads()
    try:
        runs = []
        for count, seed in ((1, 3), (threads, 3), (threads, 4)):
            numba.set_num_threads(count)
            runs.append(annealed(nmt, 400, seed))
    finally:
        numba.set_num_threads(threads)
    assert runs[0].devices.tolist() == runs[1].devices.tolist()
    assert runs[0].step_time == runs[1].step_time
    assert runs[0].devices.tolist() != runs[2].devices.tolist()


@pytest.mark.parametrize("calls", [1, 5, 40])
def test_an_interrupt_leaves_the_best_placement_so_far(nmt, monkeypatch, calls):
    best = []

    def interrupted(problem, many, original=base.simulate_many):
        if len(best) == calls:
            raise KeyboardInterrupt
        outcomes = original(problem, many)
        best.append(outcomes.step_time[outcomes.feasible].min())
        return outcomes

    search.prepare()  # which no test is to interrupt
    monkeypatch.setattr(base, "simulate_many", interrupted)
    placement = place(nmt, "annealing", budget_seconds=60)
    assert placement.interrupted
    assert placement.step_time == min(best)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_leaves_what_does_not_fit(seed):
    # Twelve ops of 1 s and 10 bytes on three devices with room for four each: only 4 + 4 + 4 fits.
    names = [f"op{number}" for number in range(12)]
    graph = make_graph(dict.fromkeys(names, 1.0), param_bytes=dict.fromkeys(names, 10))
    problem = make_problem(graph, make_cluster(3, memory=40))
    incumbent = annealed(problem, 1000, seed)
    assert incumbent.feasible
    assert incumbent.step_time == 4.0


def test_what_it_runs_is_compiled_before_the_budget_begins(monkeypatch):
    assert PLACERS["annealing"].prepare is search.prepare
    proposed, original = [], search.propose_many

    def propose(space, present, candidates, rng):
        original(space, present, candidates, rng)
        proposed.append(candidates.copy())

    monkeypatch.setattr(search, "propose_many", propose)
    search.prepare.__wrapped__()
    assert len(proposed) > 5


def test_is_far_ahead_of_its_starts(nmt):
    starts = [place(nmt, method).step_time for method in METHODS]
    assert annealed(nmt, 3000).step_time < 0.85 * min(starts)
