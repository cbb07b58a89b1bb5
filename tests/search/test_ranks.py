"""Moves of ranks: by hand, and what holds of whatever they find."""

from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, simulate
from placeto.order import ORDERS
from placeto.placers import place
from placeto.placers.ordering import reordered
from placeto.search.ranks import RankedSteps, move_ranks
from tests.builders import make_cluster, make_graph, make_pipelined


def test_any_order_is_simulated_as_it_is_of_a_problem():
    problem = make_pipelined(kept=10, memory=30)
    devices = place(problem, "stages").devices
    steps = RankedSteps(problem, devices)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(50):
        order = rng.integers(0, 6, problem.graph.num_ops)
        (over, seconds), start = steps(order.astype(float))
        found = simulate(replace(problem, grouping=problem.op_group, order=order), devices)
        assert seconds == found.step_time
        assert over == np.maximum(found.peak_memory - problem.memory_limit, 0).sum()
        assert np.array_equal(start, found.start)
        seen.add((over, seconds))
    assert len(seen) > 3  # the orders are different ones
    assert steps.evaluations == 50


def two_branches():
    """Two microbatches on two devices, best in no order that has a name.

    The first device has `a` of both, 1 and 2 s, and the second what reads them, 9 and 4 s. After
    these the first has what reads those, 1 and 8 s: 9 s behind the first microbatch's and 12 behind
    the second's. The second microbatch's first is best: the second device is busy from 2 until 15,
    and the first one from 6 until 14 and from 15 until 16.
    """
    seconds = {"0/a": 1.0, "0/b": 9.0, "0/c": 1.0, "1/a": 2.0, "1/b": 4.0, "1/c": 8.0}
    tensors = [(f"{m}/{one}", 0, [f"{m}/{two}"]) for m in (0, 1) for one, two in ("ab", "bc")]
    graph = make_graph(seconds, tensors)
    graph = replace(graph, microbatch=[0, 0, 0, 1, 1, 1], phase=[0, 0, 1] * 2)
    return PlacementProblem(graph, make_cluster(2), "none"), np.array([0, 1, 0, 0, 1, 0])


def test_an_order_without_a_name_by_hand():
    problem, devices = two_branches()

    def seconds(order):
        return simulate(replace(problem, order=order), devices).step_time

    # First come, first served: the second device has 9 s from 1 on, 4 from 10, and 8 s are left.
    assert seconds("fifo") == 22
    assert min(seconds(order) for order in ("gpipe", "eager-1f1b")) == 22
    found = move_ranks(problem, devices, 60.0, np.random.default_rng(0), 500)
    assert found.evaluations == 500
    assert seconds(found.order) == 16
    placement = replace(
        place(problem, "single"), devices=devices, step_time=22.0, found_by="given", evaluations=3
    )
    better = reordered(placement, 60.0, max_evaluations=500)
    assert better.step_time == simulate(better.problem, devices).step_time == 16
    assert np.array_equal(better.devices, devices)
    assert (better.found_by, better.evaluations) == ("ranks", 503)
    assert better.trace[-1][2] == 16


@pytest.mark.parametrize("order", ORDERS)
def test_it_is_never_worse(order):
    problem = replace(make_pipelined(kept=10, memory=30), order=order)
    for seed in range(5):
        devices = np.random.default_rng(seed).integers(0, 2, problem.num_groups)
        placement = replace(place(problem, "single"), devices=devices)
        schedule = simulate(problem, devices)
        placement = replace(
            placement, step_time=schedule.step_time, feasible=schedule.feasible,
            peak_memory=schedule.peak_memory,
        )  # fmt: skip
        found = reordered(placement, 60.0, seed, max_evaluations=40)
        again = simulate(found.problem, found.devices)
        assert (again.step_time, again.feasible) == (found.step_time, found.feasible)
        assert again.peak_memory.tolist() == found.peak_memory.tolist()
        assert found.feasible or not placement.feasible
        if found.feasible == placement.feasible:
            assert found.step_time <= placement.step_time


def test_memory_goes_before_time():
    # By `gpipe` all four microbatches are kept on both devices, and there is room for three. The
    # first has nothing else to do until the first microbatch is back; the second need not wait.
    problem = replace(make_pipelined(kept=10, memory=30), order="gpipe")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [int(name.endswith("1")) for name in problem.graph.op_names]
    assert simulate(problem, devices).peak_memory.tolist() == [40, 40]
    found = move_ranks(problem, devices, 60.0, np.random.default_rng(0), 400)
    ranked = replace(problem, grouping=problem.op_group, order=found.order)
    first, second = simulate(ranked, devices).peak_memory.tolist()
    assert first == 40 and second <= 30


def test_an_interrupt_leaves_the_placement(monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("placeto.placers.ordering.move_ranks", stopped)
    placement = place(make_pipelined(), "stages")
    found = reordered(placement, 60.0)
    assert found.interrupted
    assert found.step_time == placement.step_time


def test_nothing_to_move():
    one = place(PlacementProblem(make_graph({"a": 1.0}), make_cluster(2), "none"), "single")
    assert reordered(one, 60.0) is one
    many = place(replace(make_pipelined(), objective="throughput"), "single")
    assert reordered(many, 60.0) is many
