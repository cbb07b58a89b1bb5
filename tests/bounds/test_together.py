"""What must stay together in a pipeline, by hand and against every placement."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import Channel, Cluster, Device, PlacementProblem, load_cluster, load_graph
from placeto.bounds import throughput_bound
from placeto.bounds.together import device_parts, together_bound
from placeto.cluster import EndCost, Link
from placeto.simulation.loads import loads_of, throughputs
from tests.builders import make_cluster, make_graph, make_problem
from tests.placers.exact.every_placement import all_placements, small_problems
from tests.strategies import SCALES, Scale, examples, graphs

ROUNDING = 1 + 1e-9


def two_hosts(
    within: float, between: float, ends: EndCost | None = None, kind: str = "k"
) -> Cluster:
    """Two hosts of two devices, a0, a1, b0 and b1; bytes/s of their channels, and of the network.

    All that leaves a host shares one link, all that enters one another.
    """
    names = ["a0", "a1", "b0", "b1"]
    channels = []
    for one in names:
        for other in names:
            if one == other:
                continue
            pair = f"{one}-{other}", (one,), (other,)
            costs = () if ends is None else (ends,)
            if one[0] == other[0]:
                channels.append(Channel(*pair, within, send=costs, receive=costs))
            else:
                path = f"out-{one[0]}", f"in-{other[0]}"
                channels.append(Channel(*pair, path=path, send=costs, receive=costs))
    links = tuple(Link(f"{way}-{host}", between) for way in ("out", "in") for host in "ab")
    devices = tuple(Device(name, kind, 10**9) for name in names)
    return Cluster("two-hosts", devices, tuple(channels), links=links)


def for_throughput(graph, cluster: Cluster) -> PlacementProblem:
    return replace(make_problem(graph, cluster), objective="throughput")


def optimum(problem: PlacementProblem) -> float:
    """Seconds of the best feasible placement; infinite if there is none."""
    outcomes = throughputs(problem, all_placements(problem))
    return float(outcomes.step_time[outcomes.feasible].min(initial=np.inf))


@examples(300)
@given(small_problems())
def test_no_placement_is_below_the_bound(problem):
    problem = replace(problem, objective="throughput")
    assert throughput_bound(problem) <= optimum(problem) * ROUNDING


@st.composite
def on_hosts(draw: st.DrawFn) -> PlacementProblem:
    """Five ops or fewer on two hosts, with transfers that cost their ends something, or nothing."""
    scale: Scale = draw(SCALES)
    ends = draw(st.none() | st.builds(EndCost, st.just(0), scale.delay, st.just(0.0)))
    within, between = draw(scale.bandwidth), draw(scale.bandwidth) / draw(st.sampled_from([1, 8]))
    cluster = two_hosts(within, between, ends, "fast")
    if draw(st.booleans()):  # one of a host's channels is slower than the others
        first, *others = cluster.channels
        cluster = replace(cluster, channels=(replace(first, bandwidth=within / 8), *others))
    return PlacementProblem(draw(graphs(scale, 5)), cluster, "none", objective="throughput")


@examples(300)
@given(on_hosts())
def test_no_placement_on_hosts_is_below_the_bound(problem):
    assert throughput_bound(problem) <= optimum(problem) * ROUNDING


@pytest.mark.parametrize("multicast", [True, False])
@pytest.mark.parametrize(("size", "seconds"), [(10, 6.0), (4, 4.0), (2, 3.0)])
def test_what_takes_longer_to_send_than_to_share_a_device(size, seconds, multicast):
    """Two ops of 3 s: on one device 6 s, on two 3 s or as long as what is between them."""
    graph = make_graph({"a": 3, "b": 3}, [("a", size, ["b"])])
    problem = for_throughput(graph, make_cluster(2, multicast=multicast))
    assert throughput_bound(problem) == optimum(problem) == seconds


def test_ends_of_transfers_keep_groups_together_too():
    graph = make_graph({"a": 3, "b": 3}, [("a", 0, ["b"])])
    cluster = make_cluster(2)
    for end in ("send", "receive"):
        ends = {end: (EndCost(0, 9.0),)}
        channels = tuple(replace(channel, **ends) for channel in cluster.channels)
        problem = for_throughput(graph, replace(cluster, channels=channels))
        assert throughput_bound(problem) == optimum(problem) == 6.0


def test_a_host_has_what_the_network_is_too_slow_for():
    """Four ops of 2 s, 5 bytes between: 2 s each if the network took them, 4 s on a host."""
    names = "abcd"
    edges = [(one, 5, [other]) for one, other in pairwise(names)]
    graph = make_graph(dict.fromkeys(names, 2), edges)
    for between, seconds in ((1.0, 4.0), (5 / 3, 3.0), (10.0, 2.0)):
        problem = for_throughput(graph, two_hosts(100.0, between))
        assert throughput_bound(problem) == pytest.approx(seconds)
        assert seconds <= optimum(problem)
    assert optimum(for_throughput(graph, two_hosts(100.0, 1.0))) == 4.0


def test_of_three_some_two_are_on_one_of_two_devices():
    problem = for_throughput(make_graph({"a": 5, "b": 3, "c": 4, "d": 1}), make_cluster(2))
    assert together_bound(problem) == throughput_bound(problem) == 7.0  # 13 / 2 if shared out
    assert optimum(problem) == 7.0


@pytest.mark.parametrize(
    ("cluster", "hosts"), [("p3.8xlarge-2", 2), ("n1-p100x2-4", 4), ("k80x4", None)]
)
def test_parts_are_hosts(cluster, hosts):
    problem = PlacementProblem(load_graph("rnnlm"), load_cluster(cluster), 50)
    each, *more = device_parts(loads_of(problem))
    assert each.tolist() == list(range(problem.num_devices))
    names = [device.name[0] for device in problem.cluster.devices]
    by_host = np.unique(names, return_inverse=True)[1]
    assert [part.tolist() for part in more] == ([] if hosts is None else [by_host.tolist()])
    assert hosts is None or len(set(names)) == hosts
