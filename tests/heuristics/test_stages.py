"""Contiguous stages of layers, against all cuts, one by one."""

import gc
import weakref
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_cluster, load_graph, place, step_times
from placeto.cluster import Channel, Cluster, Device, end_seconds
from placeto.heuristics.layers import layer_positions
from placeto.heuristics.stages import Chain, balanced_stages, device_orders
from placeto.placers import NotApplicable
from placeto.zoo.synthetic import synthetic_graph
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import clusters_of_links, examples, problems


def busiest(problem, position, cuts, order):
    """Seconds of the busiest stage or wire, group by group and tensor by tensor."""
    graph, cluster = problem.graph, problem.cluster
    stage = np.searchsorted(cuts, position, side="right")
    load = [0.0] * len(order)
    for group in range(problem.num_groups):
        device = order[stage[group]]
        if problem.allowed[group, device]:
            load[stage[group]] += problem.group_seconds[group, device]
    # Each tensor goes stage by stage from its producer to the farthest who read it, both ways.
    wire = {}
    for tensor in range(graph.num_tensors):
        readers = graph.edge_consumer[graph.edge_tensor == tensor]
        here = stage[problem.op_group[graph.tensor_producer[tensor]]]
        there = stage[problem.op_group[readers]].tolist()
        size = int(graph.tensor_bytes[tensor])
        ways = [(s, s + 1) for s in range(here, max([here, *there]))]
        ways += [(s, s - 1) for s in range(here, min([here, *there]), -1)]
        for source, target in ways:
            number = problem.arrays.channel_between[order[source], order[target]]
            channel = cluster.channels[number]
            load[source] += end_seconds(channel.send, size)
            load[target] += end_seconds(channel.receive, size)
            if size > 0:
                carried = size / channel.bandwidth + channel.overhead_seconds
                wire[source, target] = wire.get((source, target), 0.0) + carried
    return max([*load, *wire.values()])


@st.composite
def few(draw):
    problem = draw(problems(max_ops=9))
    assume(problem.num_devices > 1)
    return problem


@given(problem=few())
def test_no_cuts_are_better_balanced(problem):
    check(problem)


@examples(30)
@given(data=st.data())
def test_nor_where_ends_cost_something(data):
    cluster = data.draw(clusters_of_links())
    assume(1 < cluster.num_devices < 4)
    graph = data.draw(problems(max_ops=8)).graph
    seconds = {kind: next(iter(graph.op_seconds.values())) for kind in cluster.kinds}
    check(PlacementProblem(replace(graph, op_seconds=seconds), cluster, "none"))


def check(problem):
    (position,) = layer_positions(problem)
    chain = Chain(problem, position)
    assert sorted(position.tolist()) == [*range(problem.num_groups)]
    best = np.inf
    for order in permutations(range(problem.num_devices)):
        load, cuts = chain.cuts(order)
        every = combinations_with_replacement(range(problem.num_groups + 1), len(order) - 1)
        loads = [busiest(problem, position, np.array(each), order) for each in every]
        assert load == pytest.approx(min(loads))
        assert busiest(problem, position, cuts, order) == pytest.approx(load)
        best = min(best, load)
    tried = device_orders(problem, problem.num_devices)
    assert min(chain.cuts(order)[0] for order in tried) == pytest.approx(best)


def test_nothing_is_kept_of_a_problem_that_was_cut():
    problem = make_problem(make_graph({"a": 1.0, "b": 1.0}, [("a", 1, ["b"])]), make_cluster(2))
    chain = Chain(problem, np.arange(2))
    chain.cuts((0, 1))
    gone = weakref.ref(chain)
    del chain
    gc.collect()
    assert gone() is None


def test_orders_of_devices_that_are_alike_are_one():
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x8"), 20)
    assert [device_orders(problem, count) for count in range(1, 9)] == [
        [tuple(range(count))] for count in range(1, 9)
    ]


def test_on_two_hosts_orders_differ_in_what_is_on_which():
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("n1-p100x2-4"), 20)
    assert device_orders(problem, 3) == [(0, 1, 2), (0, 2, 1), (0, 2, 3), (0, 2, 4)]


def test_the_fastest_devices_and_the_widest_channels_are_among_many_orders():
    # Of ten kinds d3 is fastest, then d8, d1, d6; d0 sends to d5 ten times as fast as others do,
    # d5 to d2, and that to d7.
    names = [f"d{number}" for number in range(10)]
    wide = {("d0", "d5"), ("d5", "d2"), ("d2", "d7")}
    channels = tuple(
        Channel(f"{one}-{other}", (one,), (other,), 1e10 if (one, other) in wide else 1e9)
        for one, other in permutations(names, 2)
    )
    devices = tuple(Device(name, f"kind {name}", 2**40) for name in names)
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, [])
    took = (5.0, 3.0, 6.0, 1.0, 7.0, 8.0, 4.0, 9.0, 2.0, 10.0)
    seconds = {device.kind: np.full(4, each) for device, each in zip(devices, took, strict=True)}
    problem = PlacementProblem(
        replace(graph, op_seconds=seconds), Cluster("ten", devices, channels), "none"
    )
    orders = device_orders(problem, 4)
    assert (3, 8, 1, 6) in orders
    assert (0, 5, 2, 7) in orders
    assert len(orders) <= 24 + 11


def test_a_network_is_cut_in_the_middle_with_its_gradients():
    # Four layers, forward and back; the third is twice as long. Cut behind the second.
    names = ["f0", "f1", "f2", "f3", "b3", "b2", "b1", "b0"]
    seconds = [1.0, 1.0, 2.0, 0.5, 0.5, 2.0, 1.0, 1.0]
    tensors = [(one, 0.1, [other]) for one, other in pairwise(names)]
    graph = make_graph(dict(zip(names, seconds, strict=True)), tensors)
    problem = make_problem(graph, make_cluster(2))
    _, first = balanced_stages(problem)
    apart = {name for name, device in zip(names, first[0], strict=True) if device == first[0][0]}
    assert apart == {"f0", "f1", "b1", "b0"}


def test_it_is_a_placer_of_any_graph():
    problem = PlacementProblem(load_graph("inception_v3"), load_cluster("k80x4"), 60)
    placement = place(problem, "stages")
    assert placement.found_by == "stages"
    batches = list(balanced_stages(problem))
    assert len(batches) == 4
    assert placement.step_time <= step_times(problem, np.concatenate(batches)).min() + 1e-12
    assert max(len(set(each.tolist())) for batch in batches for each in batch) == 4


def test_too_many_groups_are_refused(monkeypatch):
    monkeypatch.setattr("placeto.heuristics.stages._MOST_GROUPS", 3)
    problem = PlacementProblem(synthetic_graph("layered", 0, "small"), load_cluster("k80x2"))
    with pytest.raises(NotApplicable, match="stages needs at most 3 groups"):
        place(problem, "stages")
