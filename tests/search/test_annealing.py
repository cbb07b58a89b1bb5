"""The search without a policy and levels, on problems whose best placement is known."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.placers import Incumbent
from placeto.search import auto, chains
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import problems


def annealed(problem, evaluations):
    return place(problem, "annealing", 1e9, settings={"max_evaluations": evaluations})


@settings(max_examples=50)
@given(problem=problems(max_ops=6))
def test_finds_the_best_of_all_placements_of_a_small_problem(problem):
    devices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    best = Incumbent(problem, 1e9)
    best.offer_many(list(itertools.product(*devices)))
    found = annealed(problem, 1500)
    assert found.feasible == best.feasible
    if best.feasible:
        assert found.step_time == best.step_time


def test_of_fewer_groups_it_is_hotter(monkeypatch):
    # 50 groups on one device take 50 s: the temperature is 0.004 of that, twice. It begins no
    # hotter than it ends where no placements were simulated yet.
    temperatures = []

    def run_chain(task, chain, *others, original=chains.run_chain):
        temperatures.append(others[-3])
        original(task, chain, *others)

    monkeypatch.setattr(chains, "run_chain", run_chain)
    names = [f"op{number}" for number in range(50)]
    edges = [(a, 1, [b]) for a, b in itertools.pairwise(names)]
    problem = make_problem(make_graph(dict.fromkeys(names, 1.0), edges), make_cluster(2))
    place(problem, "annealing", 0.3, settings={"last_temperature": 0.004})
    assert temperatures[0] == pytest.approx(0.4)


def test_asks_no_policy_and_joins_no_groups(monkeypatch):
    def asked(*_):
        raise AssertionError

    auto.prepare()
    for name in ("compiled_policy", "stored", "coarser_incumbent"):
        monkeypatch.setattr(auto, name, asked)
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 200)
    assert annealed(problem, 300).evaluations >= 300


def test_is_far_ahead_of_its_starts():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 32)
    starts = [place(problem, method).step_time for method in ("single", "expert", "etf", "heft")]
    assert annealed(problem, 3000).step_time < 0.85 * min(starts)
