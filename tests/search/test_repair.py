"""Repair by hand, and what it never does."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_graph, load_instance, simulate
from placeto.heuristics.costs import moved_where_allowed
from placeto.heuristics.initial import all_on
from placeto.search import repair
from placeto.search.incumbent import Incumbent
from placeto.search.repair import (
    MAX_ROUNDS,
    MAX_TRIED,
    exchanged_bytes,
    offer_heuristic,
    offer_repaired,
    offer_starts,
)
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import placed, problems


def repaired(problem, devices) -> Incumbent:
    incumbent = Incumbent(problem, 60.0)
    offer_repaired(incumbent, np.array(devices))
    return incumbent


def test_pipelines_are_begun_by_partitions_too():
    problem = load_instance("ptb_small_m8-k80x2").problem(24, "1f1b")
    found = {}

    class Told(Incumbent):
        def take(self, many, outcomes):
            super().take(many, outcomes)
            found[self.part] = min(found.get(self.part, np.inf), outcomes.step_time.min())

    incumbent = Told(problem, 30.0)
    assert offer_starts(incumbent, np.random.default_rng(0))
    assert {"metis", "scotch", "stages", "heft"} <= set(found)
    assert incumbent.step_time == min(found.values()) < found["single"]
    whole = PlacementProblem(load_graph("ptb_small"), problem.cluster, 24)
    found.clear()
    offer_starts(Told(whole, 30.0), np.random.default_rng(0))
    assert not {"metis", "scotch", "stages"} & set(found)


def test_what_fits_is_left_alone():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 6, "b": 6})
    incumbent = repaired(make_problem(graph, make_cluster(2, memory=12)), [1, 1])
    assert incumbent.devices.tolist() == [1, 1]
    assert incumbent.evaluations == 1


def test_the_group_leaves_that_exchanges_least():
    # All three need 18 of 12 bytes. a and b exchange 3 bytes, b and c 1: c goes. Outputs count too:
    # a and b hold 12 and a's 3 bytes, so a limit of 15 is met and one of 14 is not.
    graph = make_graph(
        {"a": 1.0, "b": 1.0, "c": 1.0},
        [("a", 3, ["b"]), ("b", 1, ["c"])],
        param_bytes={"a": 6, "b": 6, "c": 6},
    )
    fits = repaired(make_problem(graph, make_cluster(3, memory=16)), [0, 0, 0])
    assert fits.feasible
    assert fits.devices.tolist() == [0, 0, 1]
    tight = repaired(make_problem(graph, make_cluster(3, memory=14)), [0, 0, 0])
    assert tight.feasible
    assert len(set(tight.devices.tolist())) == 3


def test_it_goes_where_it_exchanges_most_of_where_there_is_room():
    # d0 holds 40 and 60 bytes of 80: a goes, to d2 where d is, if d leaves it room there.
    pins = {1: 0, 2: 1, 3: 2}
    for size, target in ((10, 2), (50, 1)):
        graph = make_graph(
            {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0},
            [("a", 1, ["c"]), ("a", 5, ["d"])],
            param_bytes={"a": 40, "b": 60, "c": 10, "d": size},
        )
        problem = PlacementProblem(graph, make_cluster(4, memory=80), "none", pins=pins)
        assert repaired(problem, [0, 0, 1, 2]).devices.tolist() == [target, 0, 1, 2]


def test_a_second_round_takes_what_the_first_left():
    # Every op's output lives only until the next has run: d0's peak is of 40 bytes of parameters
    # and two outputs, 60 of the 110 bytes that are counted. To free 18 takes three groups of
    # 15 bytes, of which 60/110 are alive; then 45 are left, for op2's output is copied.
    names = [f"op{number}" for number in range(8)]
    graph = make_graph(
        dict.fromkeys(names, 1.0),
        [(a, 10, [b]) for a, b in pairwise(names)],
        param_bytes=dict.fromkeys(names, 5),
    )
    problem = make_problem(graph, make_cluster(2, memory=42))
    assert simulate(problem, all_on(problem, 0)).peak_memory.tolist() == [60, 0]
    assert simulate(problem, [1, 1, 1, 0, 0, 0, 0, 0]).peak_memory.tolist() == [45, 35]
    incumbent = repaired(problem, [0] * 8)
    assert incumbent.feasible
    assert incumbent.evaluations == 3
    assert incumbent.devices.tolist() == [1, 1, 1, 0, 0, 0, 0, 1]


def test_single_moves_are_simulated_where_no_device_has_room_by_the_count():
    names = [f"op{number}" for number in range(9)]
    graph = make_graph(
        dict.fromkeys(names, 1.0),
        [(a, 10, [b]) for a, b in pairwise(names)],
        param_bytes=dict.fromkeys(names, 10),
        temp_bytes={"op4": 15},
    )
    problem = make_problem(graph, make_cluster(3, memory=60))
    devices = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    # d1 holds 30 bytes of parameters, op4's input and output, and 15 more; d0 and d2 have room for
    # 10 bytes, less than any group counts. With op3 on d0 the peaks are 60, 55 and 50.
    assert simulate(problem, devices).peak_memory.tolist() == [50, 65, 50]
    incumbent = repaired(problem, devices)
    assert incumbent.feasible
    assert incumbent.evaluations == 1 + 3 * 2


def test_a_single_move_that_is_not_enough_is_followed_by_others():
    graph = make_graph(
        dict.fromkeys("abcd", 1.0),
        [("a", 4, ["b"]), ("b", 2, ["c"]), ("c", 3, ["d"])],
        param_bytes={"a": 4, "b": 2, "c": 3, "d": 5},
        temp_bytes={"a": 5, "c": 2, "d": 3},
    )
    problem = make_problem(graph, make_cluster(2, memory=16))
    # No placement that is one move away fits.
    start = [0, 1, 1, 0]
    assert simulate(problem, start).peak_memory.tolist() == [18, 12]
    for group in range(4):
        moved = [device ^ (number == group) for number, device in enumerate(start)]
        assert not simulate(problem, moved).feasible
    assert repaired(problem, start).feasible


def test_it_goes_on_where_every_move_leaves_more_above_the_limit():
    # 6 + 5 and 5 + 4 in rooms of 10: only after a move to 6 and 14 can 4 go to 6.
    params = {"a": 6, "b": 5, "c": 5, "d": 4}
    graph = make_graph(dict.fromkeys("abcd", 1.0), param_bytes=params)
    found = repaired(make_problem(graph, make_cluster(2, memory=10)), [0, 0, 1, 1])
    assert found.feasible
    assert found.devices[0] == found.devices[3] != found.devices[1] == found.devices[2]


@given(problem=problems(max_ops=15), data=st.data())
def test_a_repair_offers_only_what_is_allowed_and_keeps_what_fits(problem, data):
    offered = []

    class Watched(Incumbent):
        def offer_many(self, many):
            offered.extend(np.asarray(many).tolist())
            return super().offer_many(many)

    device = st.integers(0, problem.num_devices - 1)
    count = problem.num_groups
    drawn = np.array(data.draw(st.lists(device, min_size=count, max_size=count)))
    devices = moved_where_allowed(problem, drawn)
    incumbent = Watched(problem, 60.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, "MAX_MOVES", 5)
        offer_repaired(incumbent, devices)
    assert offered[0] == devices.tolist()
    assert len(offered) == incumbent.evaluations <= MAX_ROUNDS + 5 * MAX_TRIED
    for placement in offered:
        assert problem.allowed[np.arange(count), placement].all()
    feasible = [simulate(problem, placement).feasible for placement in offered]
    assert incumbent.feasible == any(feasible)
    assert not any(feasible[:1]) or len(offered) == 1


@given(problem=problems(max_ops=15), data=st.data())
def test_by_the_count_no_group_returns_to_a_device_that_it_has_left(problem, data):
    device = st.integers(0, problem.num_devices - 1)
    count = problem.num_groups
    drawn = np.array(data.draw(st.lists(device, min_size=count, max_size=count)))
    check_that_none_returns(problem, moved_where_allowed(problem, drawn))


def check_that_none_returns(problem, devices):
    seen = []

    class Watched(Incumbent):
        def offer_many(self, many):
            seen.extend(np.asarray(many).tolist())
            return super().offer_many(many)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, "_best_move", lambda _, devices, peak, awake, until: (None, peak))
        offer_repaired(Watched(problem, 60.0), np.array(devices))
    left = set()
    for before, after in pairwise(seen):
        assert before != after
        for group, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                assert (group, new) not in left
                left.add((group, old))


@given(pair=placed(max_ops=30))
def test_exchanged_bytes_counted_again(pair):
    problem, devices = pair
    exchanged = np.zeros((problem.num_groups, problem.num_devices), dtype=int)
    for source, target, size in zip(*problem.group_edges, strict=True):
        exchanged[source, devices[target]] += size
        exchanged[target, devices[source]] += size
    assert exchanged_bytes(problem, np.array(devices)).tolist() == exchanged.tolist()


def test_what_may_not_be_where_it_is_moves_to_its_neighbours():
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0}, [("a", 3, ["b"]), ("b", 1, ["c"])])
    problem = PlacementProblem(graph, make_cluster(3), "none", pins={1: 2})
    assert moved_where_allowed(problem, np.array([0, 1, 0])).tolist() == [0, 2, 0]
    problem.allowed.flags.writeable = True
    problem.allowed[1] = [True, False, True]
    assert moved_where_allowed(problem, np.array([0, 1, 2])).tolist() == [0, 0, 2]
    assert moved_where_allowed(problem, np.array([1, 1, 2])).tolist() == [1, 2, 2]


def test_once_its_share_is_spent_a_heuristic_offers_the_first_of_a_batch():
    problem = make_problem(make_graph({"a": 1.0, "b": 1.0}), make_cluster(2))
    for share, offered in ((1.0, 100), (0.0, 1)):
        incumbent = Incumbent(problem, 60.0)
        offer_heuristic(incumbent, np.random.default_rng(0), "random", share)
        assert incumbent.evaluations == offered
