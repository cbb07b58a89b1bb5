"""What placers leave to be measured."""

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, load_graph
from placeto.placers import place
from placeto.search.incumbent import RECENT, Incumbent
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem


def test_the_last_few_that_were_the_fastest_until_then():
    # Twenty ops of a second each, one more on the second device in every row.
    graph = make_graph(dict.fromkeys("abcdefghijklmnopqrst", 1.0))
    incumbent = Incumbent(make_problem(graph, make_cluster(2)), 1.0)
    rows = [[int(op < count) for op in range(20)] for count in range(RECENT + 3)]
    for row in rows:
        incumbent.offer(row)
        incumbent.offer([0] * 20)
    assert [devices.tolist() for devices in incumbent.recent] == rows[-RECENT:]


def test_what_does_not_fit_is_no_candidate():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 5, "b": 5})
    incumbent = Incumbent(make_problem(graph, make_cluster(2, memory=5)), 1.0)
    incumbent.offer([0, 0])
    assert list(incumbent.recent) == []
    incumbent.offer([0, 1])
    assert [devices.tolist() for devices in incumbent.recent] == [[0, 1]]


@pytest.mark.parametrize("method", ["annealing", "random", "etf"])
def test_candidates_get_slower_from_the_placement_on(method):
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 20)
    settings = {"max_evaluations": 300} if method == "annealing" else {}
    placement = place(problem, method, 60.0, settings=settings)
    assert 1 <= len(placement.candidates) <= RECENT
    np.testing.assert_array_equal(placement.candidates[0], placement.devices)
    times = simulate_many(problem, np.stack(placement.candidates))
    assert times.feasible.all()
    assert (np.diff(times.step_time) > 0).all()
    assert times.step_time[::-1].tolist() == [time for *_, time in placement.trace][-RECENT:]
