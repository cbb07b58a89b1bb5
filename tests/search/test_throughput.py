"""The search where throughput is the objective."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.throughput import make_problem, solve
from placeto import place, simulate
from placeto.heuristics.initial import random_placement
from placeto.placers import Incumbent
from placeto.search import moves
from placeto.search.chain import BEST_STEP_TIME, COST
from placeto.search.chains import new_chain
from placeto.search.load_chain import load_task, run_load_chain
from placeto.simulation.loads import throughputs
from tests.builders import make_cluster, make_graph
from tests.builders import make_problem as one_op_a_group

CASES = [
    (shape, size, devices, share, ends)
    for shape, size in (("chain", 16), ("skips", 16), ("branches", 14), ("layered", 12))
    for devices, share, ends in ((2, 0.3, True), (3, 1.0, False), (4, 0.3, True))
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_finds_the_optimum_of_small_chains_and_dags(case):
    shape, size, devices, share, ends = case
    problem = make_problem(shape, size, devices, share, ends=ends)
    exact = place(problem, "exact", 60.0)
    assert exact.lower_bound == pytest.approx(exact.seconds, rel=1e-6)
    found = place(problem, "auto", 60.0)
    assert found.seconds == pytest.approx(exact.seconds, rel=1e-8)
    assert found.wall_seconds < 30  # as it is proven
    # Without a proof it comes near: these are partitions of a few numbers.
    settings = {"max_evaluations": 20_000}
    annealed = place(problem, "annealing", np.inf, settings=settings)
    assert exact.seconds * (1 - 1e-8) <= annealed.seconds <= 1.01 * exact.seconds


def test_a_mixed_integer_program_finds_the_same_optimum():
    for ends in (True, False):
        problem = make_problem("branches", 9, 3, 0.5, ends=ends)
        found, proven = solve(problem, 30.0)
        assert proven == pytest.approx(found, rel=1e-5)
        assert place(problem, "exact", 30.0).seconds == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("ends", [True, False])
def test_changed_sums_are_those_of_the_placement(ends):
    problem = make_problem("layered", 60, 4, 0.5, ends=ends)
    incumbent, rng = Incumbent(problem, np.inf), np.random.default_rng(0)
    incumbent.offer(random_placement(problem, rng))
    chain, scale = new_chain(incumbent, 1.0), incumbent.step_time
    task = load_task(problem, moves.neighbourhood(problem), scale)
    run_load_chain(task, chain, 0.1 * scale, 2000, rng)
    present = chain.numbers[COST]
    best = throughputs(problem, chain.best[None])
    assert best.step_time[0] == chain.numbers[BEST_STEP_TIME] < scale
    assert best.peak_memory[0].tolist() == chain.best_peak.tolist()
    run_load_chain(task, chain, 0.1 * scale, 0, rng)  # adds them up anew
    assert chain.numbers[COST] == pytest.approx(present, rel=1e-12)


def test_what_fits_is_better_than_what_is_faster():
    """Of three ops of 1 s only two fit on a device, and a transfer takes 5 s."""
    graph = make_graph(
        {"a": 1, "b": 1, "c": 1}, [("a", 5, ["b", "c"])], param_bytes={"a": 6, "b": 6, "c": 6}
    )
    problem = replace(one_op_a_group(graph, make_cluster(2, memory=17)), objective="throughput")
    found = place(problem, "auto", np.inf, settings={"max_evaluations": 2000})
    assert found.feasible
    assert found.seconds == 5.0
    assert found.peak_memory.sum() == 3 * 6 + 5  # the tensor is where it is made
    assert found.step_time == simulate(problem, found.devices).step_time > 5.0


@pytest.mark.parametrize("method", ["heft", "colocrl"])
def test_methods_that_know_nothing_of_it_are_judged_by_it(method):
    problem = make_problem("skips", 12, 2, 0.3, ends=True)
    found = place(problem, method, 1.0)
    assert found.seconds == throughputs(problem, found.devices[None]).step_time[0]
    assert found.trace[-1][-1] == found.seconds
