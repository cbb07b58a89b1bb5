"""The search without a policy and levels, on problems whose best placement is known."""

import itertools

import numpy as np
from hypothesis import given

from placeto import PlacementProblem, load_cluster, load_graph, place
from placeto.placers import Incumbent
from tests.strategies import examples, problems


def annealed(problem, evaluations):
    return place(problem, "annealing", 1e9, settings={"max_evaluations": evaluations})


@examples(25)
@given(problem=problems(max_ops=6))
def test_finds_the_best_of_all_placements_of_a_small_problem(problem):
    devices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    best = Incumbent(problem, 1e9)
    best.offer_many(list(itertools.product(*devices)))
    found = annealed(problem, 1500)
    assert found.feasible == best.feasible
    if best.feasible:
        assert found.step_time == best.step_time


def test_is_far_ahead_of_its_starts():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x4"), 32)
    starts = [place(problem, method).step_time for method in ("single", "expert", "etf", "heft")]
    assert annealed(problem, 3000).step_time < 0.85 * min(starts)
