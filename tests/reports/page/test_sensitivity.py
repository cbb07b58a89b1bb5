from dataclasses import replace

import numpy as np
import pytest

from placeto import PlacementProblem, load_cluster, load_graph, place, simulate
from placeto.reports.page.others import (
    GREEDY,
    others,
    place_quickly,
    run_again,
    sensitivity,
)
from placeto.reports.page.report import RunContext, make_report
from placeto.reports.rows import baseline
from placeto.simulation.scaled import scaled_problem
from tests.builders import make_cluster, make_graph, make_pipelined, make_problem
from tests.reports.page.choosing import placement_of

# Apart, b and c take 5 s of ops and two transfers of 1.4 s: 7.8 s. On one device it is 8 s.
FORK = make_graph(
    {"a": 1.0, "b": 3.0, "c": 3.0, "d": 1.0},
    [("a", 14, ["b", "c"]), ("b", 14, ["d"]), ("c", 14, ["d"])],
)
APART = [0, 0, 1, 0]


def fork():
    return make_problem(FORK, make_cluster(2, bandwidth=10.0))


def test_each_case_is_what_simulating_by_hand_gives():
    problem = fork()
    outcomes = sensitivity(placement_of(problem, APART), [place(problem, "single")])
    found = {each.case.name: (each.step_time, each.other_step_time) for each in outcomes}
    assert found == {
        "as believed": (pytest.approx(7.8), 8.0),
        "bandwidth −25%": (pytest.approx(5 + 2.8 / 0.75), 8.0),
        "bandwidth +25%": (pytest.approx(5 + 2.8 / 1.25), 8.0),
        "ends kept for 25% of a transfer": (pytest.approx(7.8), 8.0),  # none waits for an end
        "op times −25%": (pytest.approx(3.75 + 2.8), 6.0),
        "op times +25%": (pytest.approx(6.25 + 2.8), 10.0),
    }
    assert [each.stands for each in outcomes] == [True, False, True, True, False, True]
    assert outcomes[1].margin == pytest.approx((5 + 2.8 / 0.75) / 8 - 1)
    assert outcomes[5].margin == pytest.approx(10 / 9.05 - 1)
    assert {each.other for each in outcomes} == {"single"}


def test_a_placement_with_an_order_of_its_own_is_beside_others_in_theirs():
    problem = replace(make_pipelined(), order="gpipe")
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [int(name.endswith("1")) for name in problem.graph.op_names]
    # Ranks with which the second device goes back at once: 15 s for 18, see `test_ordering`.
    ranks = replace(problem, grouping=problem.op_group, order="eager-1f1b").ranks
    ranked = replace(problem, grouping=problem.op_group, order=ranks)
    other = placement_of(problem, devices, method="annealing")  # which is not run again
    base = replace(baseline(problem), ordered=ranked)
    found = make_report(placement_of(ranked, devices), base, RunContext("", "none"))
    assert found.schedule.step_time == 15
    assert {each.problem.order for each in found.others.placements} == {"gpipe"}
    believed, *rest = sensitivity(placement_of(ranked, devices), [other])
    assert (believed.step_time, believed.other_step_time) == (15, 18)
    assert all(each.step_time < each.other_step_time for each in rest)


def test_others_place_again_under_the_costs_of_a_case():
    problem = fork()
    # What etf found with the costs as believed is bad; under others it is run again.
    bad = placement_of(problem, [0, 1, 1, 0], method="etf", wall_seconds=0.01)
    outcomes = sensitivity(placement_of(problem, APART), [bad])
    assert outcomes[0].other_step_time == bad.step_time
    for outcome in outcomes[1:]:
        case = scaled_problem(
            problem,
            bandwidth=outcome.case.bandwidth,
            ends=outcome.case.ends,
            op_seconds=outcome.case.op_seconds,
        )
        old = simulate(case, bad.devices).step_time
        assert outcome.other_step_time == min(old, place(case, "etf").step_time)
    assert any(each.other_step_time < 0.9 * bad.step_time for each in outcomes[1:3])


def test_the_quickest_are_run_again_and_searches_never():
    problem = fork()
    seconds = {"single": 0.5, "etf": 0.1, "heft": 0.5, "annealing": 0.0, "placeto": 0.0}
    found = [
        placement_of(problem, APART, method=method, wall_seconds=took)
        for method, took in seconds.items()
    ]
    assert run_again(found, 0.7) == ["etf", "single"]
    greedy = replace(found[-1], settings=GREEDY)
    assert run_again([*found[:-1], greedy], 0.7) == ["placeto", "etf", "single"]


def test_what_does_not_fit_never_wins():
    # On one device 6 bytes of parameters would be too many.
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 3, "b": 3})
    problem = make_problem(graph, make_cluster(2, memory=5))
    single = placement_of(problem, [0, 0], method="annealing")
    for outcome in sensitivity(placement_of(problem, [0, 1]), [single]):
        assert (outcome.other, outcome.other_step_time) == (None, np.inf)
        assert outcome.stands
    (alone, *_) = sensitivity(single, [])
    assert (alone.step_time, alone.other, alone.margin) == (np.inf, None, 0.0)


def test_other_placers_are_run_until_their_time_is_spent():
    problem = fork()
    every = others(problem, ("single", "cpu", "etf"))
    assert [each.method for each in every.placements] == ["single", "etf"]
    assert list(every.left_out) == ["cpu"]
    ticks = iter(range(100))
    few = others(problem, ("single", "etf", "heft"), budget_seconds=2.0, clock=lambda: next(ticks))
    assert [each.method for each in few.placements] == ["single"]
    assert few.left_out == dict.fromkeys(
        ["etf", "heft"], "the 2 s for the other placers were spent"
    )


def test_the_policy_takes_its_likeliest_devices_and_no_budget():
    problem = PlacementProblem(load_graph("nmt"), load_cluster("k80x2"), 12)
    placement = place_quickly(problem, "placeto", 0)
    assert placement.wall_seconds < 15  # of a budget of 30
    assert placement.learning == ()
