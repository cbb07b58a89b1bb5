"""Which order a pipelined step gets, and what goes by it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from placeto import PlacementProblem, simulate
from placeto.placement import load_placement
from placeto.placers import ordering, place
from tests.builders import make_cluster, make_graph, make_pipelined


def test_orders_by_hand_and_the_best_is_taken(monkeypatch):
    problem = make_pipelined()
    stages = np.array([int(name.endswith("1")) for name in problem.graph.op_names])
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = stages

    def seconds(order):
        return simulate(replace(problem, grouping=problem.op_group, order=order), devices).step_time

    # Forward until 9 s on the second device, which is back at 10, 11, 12 and 13; the first then
    # needs 2 s for each, until 18.
    assert seconds("gpipe") == 18
    # The second works from 1 to 13 without a break, and 2 s are left for the first.
    assert seconds("1f1b") == 15
    assert seconds("fifo") == 17
    monkeypatch.setattr(ordering, "place", lambda *_: SimpleNamespace(devices=devices))
    found = ordering.ordered(problem)
    assert found.order == "1f1b"
    assert np.array_equal(found.op_group, problem.op_group)


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
