"""Branch and bound for throughput against all placements."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import place
from placeto.bounds import throughput_bound
from placeto.cluster import EndCost
from placeto.heuristics.initial import single_devices
from placeto.placers import Incumbent
from placeto.placers.exact.branching import branch_and_bound, interchangeable_devices
from placeto.placers.exact.loads import load_bounds, load_relaxation_of
from placeto.placers.exact.relaxation import UNPLACED
from placeto.simulation.loads import throughputs
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.exact.every_placement import all_placements, ranks, small_problems
from tests.strategies import examples

PROBLEMS = small_problems().map(lambda problem: replace(problem, objective="throughput"))


@examples(100)
@given(PROBLEMS)
def test_finds_the_best_placement_of_all(problem):
    incumbent = Incumbent(problem, 60.0)
    branch_and_bound(incumbent)
    excess, seconds = min(ranks(problem, throughputs(problem, all_placements(problem))))
    assert np.maximum(incumbent.peak_memory - problem.memory_limit, 0).sum() == excess
    assert incumbent.step_time == pytest.approx(seconds, rel=1e-8)
    if excess == 0:
        assert seconds * (1 - 1e-8) <= incumbent.lower_bound <= seconds
        assert throughput_bound(problem) <= seconds * (1 + 1e-9)
    else:
        assert incumbent.lower_bound == np.inf


@examples(100)
@given(PROBLEMS, st.data())
def test_no_completion_is_below_the_bounds(problem, data):
    every = all_placements(problem)
    rank = ranks(problem, throughputs(problem, every))
    placement = every[data.draw(st.integers(0, len(every) - 1))]
    booleans = st.lists(st.booleans(), min_size=problem.num_groups, max_size=problem.num_groups)
    free = np.array(data.draw(booleans))
    partial = np.where(free, UNPLACED, placement)
    (seconds,), (excess,) = load_bounds(*load_relaxation_of(problem), partial[None])
    lone = throughputs(problem, single_devices(problem)).step_time.min()
    seconds = min(seconds, lone if (problem.alone < 1).any() else np.inf)
    completions = (every[:, ~free] == partial[~free]).all(axis=1)
    rank = [each for each, here in zip(rank, completions, strict=True) if here]
    assert seconds * (1 - 1e-9) <= min(time for _, time in rank)
    assert excess <= min(over for over, _ in rank)


def test_by_hand():
    """Of 8 s and four launch overheads on two devices, 5 s each."""
    graph = make_graph({"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, [("a", 6, ["b"])])
    problem = make_problem(graph, make_cluster(2, launch_overhead=0.5))
    problem = replace(problem, objective="throughput")
    placement = place(problem, "exact")
    # a with d, and b with c, would be 5 s on both, but for the 6 s of the tensor between; a and b
    # on one device are 6 s, too.
    assert placement.microbatch_seconds == placement.seconds == 6.0
    assert placement.lower_bound == pytest.approx(6.0)
    assert throughput_bound(problem) == pytest.approx(6.0)


def test_devices_that_pay_for_transfers_alike_are_tried_once():
    problem = make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(3))
    channels = problem.cluster.channels
    alike = tuple(replace(each, send=(EndCost(0, 1.0),)) for each in channels)
    unlike = (replace(alike[0], send=(EndCost(0, 2.0),)), *alike[1:])
    for these, classes in ((alike, [0, 0, 0]), (unlike, [0, 1, 1])):
        cluster = replace(problem.cluster, channels=these)
        changed = replace(problem, cluster=cluster, objective="throughput")
        assert interchangeable_devices(changed).tolist() == classes
        assert interchangeable_devices(replace(changed, objective="step-time")).tolist() == [
            0,
            1,
            2,
        ]
