"""Which order a pipelined step gets, and what goes by it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from placeto import PlacementProblem, PlacetoError, simulate
from placeto.placement import load_placement
from placeto.placers import ordering, place
from tests.builders import make_cluster, make_graph, make_pipelined


def by_layers(problem):
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [int(name.endswith("1")) for name in problem.graph.op_names]
    return devices


def test_orders_by_hand_and_the_best_is_taken(monkeypatch):
    problem = make_pipelined()
    devices = by_layers(problem)

    def seconds(order):
        return simulate(replace(problem, grouping=problem.op_group, order=order), devices).step_time

    # Forward until 9 s on the second device, which is back at 10, 11, 12 and 13; the first then
    # needs 2 s for each, until 18.
    assert seconds("gpipe") == 18
    # The second works from 1 to 13 without a break, and 2 s are left for the first.
    assert seconds("1f1b") == 15
    assert seconds("fifo") == 17
    monkeypatch.setattr(ordering, "place", lambda *_, **__: SimpleNamespace(devices=devices))
    found = ordering.ordered(problem)
    assert found.order == "1f1b"
    assert np.array_equal(found.op_group, problem.op_group)
    # What heuristics miss the search finds: on one device no order is better than another.
    monkeypatch.setattr(ordering, "place", lambda _, method, *__, **___: SimpleNamespace(
        devices=devices if method == "annealing" else 0 * devices))  # fmt: skip
    assert ordering.ordered(problem).order == "1f1b"


def test_1f1b_fits_where_gpipe_does_not(monkeypatch):
    problem = make_pipelined(kept=10, memory=30)
    devices = by_layers(problem)

    def schedule(order):
        return simulate(replace(problem, grouping=problem.op_group, order=order), devices)

    # The second device is back with the first microbatch at 4. The first has time for all four
    # forward passes until then; held back, it has two, and a third when it has done the way back
    # of the first, from 4 to 6. The second device goes back at once, or after all four.
    gpipe, one_by_one = schedule("gpipe"), schedule("1f1b")
    assert gpipe.peak_memory.tolist() == [40, 40]
    assert one_by_one.peak_memory.tolist() == [20, 10]
    assert one_by_one.feasible and not gpipe.feasible
    names = problem.graph.op_names
    begun = {name: one_by_one.start[names.index(name)] for name in names if name.endswith("f0")}
    assert begun == {"0/f0": 0, "1/f0": 1, "2/f0": 6, "3/f0": 9}
    # By ranks alone all four begin.
    unheld = schedule("eager-1f1b")
    assert unheld.peak_memory.tolist() == [40, 10]
    assert unheld.step_time == one_by_one.step_time == 15
    monkeypatch.setattr(ordering, "place", lambda *_, **__: SimpleNamespace(devices=devices))
    assert ordering.ordered(problem).order == "1f1b"


def test_who_is_held_back():
    problem = replace(make_pipelined(), order="1f1b")
    name = problem.graph.op_names.__getitem__
    pairs = [(name(before), name(after)) for before, after in problem.held_back.tolist()]
    assert pairs == [("0/b0", "2/f0"), ("1/b0", "3/f0")]
    for other in (replace(problem, order="gpipe"), replace(problem, cluster=make_cluster(4))):
        assert len(other.held_back) == 0


def test_microbatches_that_go_against_their_numbers_have_no_1f1b():
    seconds = {"0/f": 1.0, "0/b": 1.0, "1/f": 1.0, "1/b": 1.0}
    graph = make_graph(seconds, [("1/f", 0, ["0/b"])])
    graph = replace(graph, microbatch=[0, 0, 1, 1], phase=[0, 1, 0, 1])
    with pytest.raises(PlacetoError, match="the forward pass of one that is 1 later"):
        PlacementProblem(graph, make_cluster(1), "none", order="1f1b")


def test_a_step_of_one_microbatch_stays_as_it_is():
    problem = PlacementProblem(make_graph({"a": 1.0}), make_cluster(2), "none")
    assert ordering.ordered(problem) is problem


@pytest.mark.parametrize("order", ["1f1b", [*range(16)]])
def test_a_placement_file_has_the_order(tmp_path, order):
    problem = replace(make_pipelined(), order=order)
    placement = place(problem, "stages")
    placement.save(tmp_path / "p.json")
    again, devices = load_placement(tmp_path / "p.json", problem.graph, problem.cluster)
    assert np.array_equal(again.ranks, problem.ranks)
    assert simulate(again, devices).step_time == placement.step_time
