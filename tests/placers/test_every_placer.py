"""What holds for every placer that ends by itself."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacetoError, place, simulate
from placeto.heuristics.initial import all_on
from placeto.placers import PLACERS, Incumbent, NotApplicable
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import pinned, problems

METHODS = [placer.name for placer in PLACERS.values() if not placer.anytime]
WITH_MEMORY = [
    "stages", "scotch", "mincut", "metis", "etf", "heft", "m-topo", "m-etf", "m-sct",
]  # fmt: skip
WITHOUT_CPU = [method for method in METHODS if method != "cpu"]
CHAIN = make_graph({"a": 1.0, "b": 2.0, "c": 1.0}, [("a", 4, ["b"]), ("b", 4, ["c"])])


@given(problem=pinned(), method=st.sampled_from(METHODS))
def test_pins_kernels_and_colocation_are_obeyed(problem, method):
    try:
        placement = place(problem, method)
    except NotApplicable:
        assert method == "cpu"
        assert "cpu" not in problem.cluster.kinds
        return
    groups = np.arange(problem.num_groups)
    assert problem.allowed[groups, placement.devices].all()
    for group, device in problem.pins.items():
        assert placement.devices[group] == device
    by_op = placement.op_devices()
    first: dict[int, str] = {}
    for name, key in zip(problem.graph.op_names, problem.graph.colocation.tolist(), strict=True):
        if key >= 0:
            assert by_op[name] == first.setdefault(key, by_op[name])


@given(problem=problems(max_ops=20), method=st.sampled_from(WITHOUT_CPU))
def test_what_a_placement_says_of_itself_is_what_is_simulated(problem, method):
    placement = place(problem, method)
    schedule = simulate(problem, placement.devices)
    assert placement.step_time == schedule.step_time
    assert placement.peak_memory.tolist() == schedule.peak_memory.tolist()
    assert placement.feasible == schedule.feasible


@given(problem=problems(max_ops=20), method=st.sampled_from(WITHOUT_CPU))
def test_the_same_seed_gives_the_same_placement(problem, method):
    assert place(problem, method, seed=5) == place(problem, method, seed=5)


@pytest.mark.parametrize("method", WITH_MEMORY)
def test_what_does_not_fit_on_one_device_is_split(method):
    names = [f"op{number}" for number in range(9)]
    graph = make_graph(
        dict.fromkeys(names, 1.0),
        [(a, 10, [b]) for a, b in pairwise(names)],
        param_bytes=dict.fromkeys(names, 10),
        temp_bytes={"op4": 15},
    )
    # op4's parameters, its input, output and scratch space leave room for one group more.
    problem = make_problem(graph, make_cluster(3, memory=60))
    assert not simulate(problem, all_on(problem, 0)).feasible
    assert place(problem, method).feasible


def test_random_is_the_best_of_a_hundred():
    problem = make_problem(CHAIN, make_cluster(2))
    placement = place(problem, "random")
    assert placement.evaluations == 100
    assert placement.step_time == 4.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "eft"}, "no placer is called 'eft'; placers: "),
        ({"method": "etf", "budget_seconds": 0}, "budget is 0 seconds"),
        ({"method": "etf", "budget_seconds": float("nan")}, "budget is nan seconds"),
        ({"method": "etf", "seed": -1}, "seed is -1"),
        ({"method": "etf", "seed": 1.5}, "seed is 1.5, expected a whole number"),
        ({"method": "etf", "seed": None}, "seed is None"),
        ({"method": "etf", "budget_seconds": "3"}, "budget is '3' seconds"),
        ({"method": "etf", "budget_seconds": None}, "budget is None seconds"),
        ({"method": None}, "no placer is called None"),
        ({"method": "cpu"}, "has no device of kind cpu"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(arguments, message):
    with pytest.raises(PlacetoError, match=message):
        place(make_problem(CHAIN, make_cluster(2)), **arguments)


def test_feasible_beats_faster_and_less_over_the_limit_beats_faster_too():
    # Two ops of 1 s and 6 bytes of parameters, independent: together on one device takes 2 s.
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 6, "b": 6})
    incumbent = Incumbent(make_problem(graph, make_cluster(2, memory=6)), 1.0)
    incumbent.offer([0, 0])
    assert not incumbent.feasible
    incumbent.offer([1, 0])
    assert incumbent.feasible
    incumbent.offer([1, 1])
    assert incumbent.devices.tolist() == [1, 0]

    tight = Incumbent(make_problem(graph, make_cluster(2, memory=5)), 1.0)
    tight.offer([0, 0])  # 7 bytes over
    tight.offer([0, 1])  # 2 bytes over
    assert tight.devices.tolist() == [0, 1]
    assert not tight.feasible
    assert tight.evaluations == 2
