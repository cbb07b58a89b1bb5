import numpy as np
import pytest
from hypothesis import given

from placeto import Channel, Cluster, Device, PlacementProblem, simulate
from placeto.bounds import infeasibility, lower_bound
from placeto.bounds.memory import fitting_devices, least_memory
from tests.bounds.brute_force import Enumerated, enumerated
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import examples


@examples(100)
@given(every=enumerated())
def test_infeasibility_is_claimed_only_where_no_placement_fits(every: Enumerated) -> None:
    if infeasibility(every.problem) is not None:
        assert not every.outcomes.feasible.any()


@given(every=enumerated())
def test_feasible_placements_are_where_there_is_room(every: Enumerated) -> None:
    groups = np.arange(every.problem.num_groups)
    need, room = least_memory(every.problem), fitting_devices(every.problem)
    for devices, peak, feasible in zip(
        every.placements, every.outcomes.peak_memory, every.outcomes.feasible, strict=True
    ):
        assert (need[groups, devices] <= peak[devices]).all()
        assert not feasible or room[groups, devices].all()


def test_a_group_needs_what_its_largest_op_reads_writes_and_works_in():
    graph = make_graph(
        {"a": 1.0, "b": 1.0, "c": 0.0},
        [("a", 3, ["b"]), ("b", 4, ["c"])],
        param_bytes={"a": 100, "b": 200},
        temp_bytes={"b": 5, "c": 50},
    )
    problem = make_problem(graph, make_cluster(1, memory=1000))
    # c takes no time, so that its bytes may be held for none.
    assert least_memory(problem)[:, 0].tolist() == [103, 212, 0]
    assert simulate(problem, [0, 0, 0]).peak_memory[0] == 312
    assert infeasibility(problem) is None


def test_a_group_larger_than_its_devices_is_named():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 3, "b": 11})
    message = infeasibility(make_problem(graph, make_cluster(3, memory=10)))
    assert message is not None
    assert "group 1 ('b' and what goes with it) needs at least 11 B" in message
    assert "'d0'" in message
    assert "has 10 B" in message
    assert infeasibility(make_problem(graph, make_cluster(3, memory=11))) is None


def test_parameters_larger_than_all_memory():
    graph = make_graph({name: 1.0 for name in "abc"}, param_bytes={name: 7 for name in "abc"})
    message = infeasibility(make_problem(graph, make_cluster(2, memory=10)))
    assert message is not None
    assert "the parameters take 21 B, all devices together have 20 B" in message


def test_pins_that_overfill_a_device():
    graph = make_graph({name: 1.0 for name in "abc"}, param_bytes={name: 4 for name in "abc"})
    cluster = make_cluster(2, memory=10)
    pinned = PlacementProblem(graph, cluster, "none", pins={0: 1, 1: 1, 2: 1})
    message = infeasibility(pinned)
    assert message is not None
    assert "one gets at least 1.2 times what it has" in message
    assert infeasibility(PlacementProblem(graph, cluster, "none", pins={0: 1, 1: 1})) is None


def test_parameters_that_only_some_kinds_can_hold():
    # Each of two kinds runs two ops alone: 12 bytes on 10, though there are 30 in all.
    graph = make_graph({name: 1.0 for name in "ab"}, param_bytes={"a": 6, "b": 6})
    devices = (Device("small", "k", 10), Device("large", "other", 20))
    channel = Channel("bus", ("small", "large"), ("small", "large"), 1.0)
    columns = {"k": np.array([1.0, 1.0]), "other": np.array([np.inf, np.inf])}
    object.__setattr__(graph, "op_seconds", columns)
    problem = PlacementProblem(graph, Cluster("two", devices, (channel,)), "none")
    message = infeasibility(problem)
    assert message is not None
    assert "1.2 times" in message


def test_a_problem_that_fits_nowhere_is_bounded_as_if_it_did():
    graph = make_graph({"a": 1.0}, param_bytes={"a": 11})
    problem = make_problem(graph, make_cluster(1, memory=10))
    assert lower_bound(problem) == 1.0


@pytest.mark.parametrize("memory", [0, 1])
def test_devices_without_memory(memory):
    graph = make_graph({"a": 1.0, "b": 0.0}, param_bytes={"a": 1})
    problem = make_problem(graph, make_cluster(2, memory=memory))
    assert (infeasibility(problem) is None) == (memory == 1)
