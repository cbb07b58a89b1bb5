from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import Channel, Cluster, EndCost, Link, PlacementProblem, load_cluster, simulate
from placeto.reports.uncertainty import cases, loses_if_a_tenth_off
from placeto.simulation.scaled import scaled_problem
from tests.builders import make_cluster, make_graph, make_problem
from tests.reports.page.choosing import placement_of
from tests.strategies import clusters, clusters_of_links, placements, problems

FORK = make_graph(
    {"a": 1.0, "b": 6.0, "c": 3.0, "d": 1.0},
    [("a", 14, ["b", "c"]), ("b", 14, ["d"]), ("c", 14, ["d"])],
)
APART = [0, 0, 1, 0]


def with_channels(*channels: Channel, links: tuple[Link, ...] = ()) -> Cluster:
    return replace(make_cluster(2), channels=channels, links=links)


def test_ends_that_nobody_knows_are_kept_for_a_share_of_a_transfer():
    # A transfer takes 1.4 s, so an end is kept for 0.35. a [0, 1), sending [1, 1.35), b [1.35,
    # 7.35). c [2.4, 5.4) on d1; what it sends could be received from 5.4 on, but is from 7.35 on,
    # after b: d [7.7, 8.7). As believed b is [1, 7), and d [7, 8).
    problem = make_problem(FORK, make_cluster(2, bandwidth=10.0))
    assert simulate(problem, APART).step_time == 8
    costly = scaled_problem(problem, ends=1.25)
    assert simulate(costly, APART).start.tolist() == pytest.approx([0, 1.35, 2.4, 7.7])
    assert simulate(scaled_problem(problem, ends=0.75), APART).step_time == 8
    # What rests and what is on the way count, too: 1.4 + 2 + 6 s.
    slow = make_problem(FORK, make_cluster(2, bandwidth=10.0, latency=2.0, overhead=6.0))
    (send,) = scaled_problem(slow, ends=1.25).cluster.channels[0].send
    assert send.seconds + 14 * send.seconds_per_byte == pytest.approx(9.4 / 4)


def test_links_and_ends_that_are_known_are_scaled():
    cluster = with_channels(
        Channel("there", ("d0",), ("d1",), path=("l", "m"), send=(EndCost(0, 2, 4), EndCost(9, 8))),
        Channel("back", ("d1",), ("d0",), 8.0, 3.0, 5.0, multicast=True),
        links=(Link("l", 16.0, 3.0), Link("m", 4.0)),
    )
    problem = PlacementProblem(FORK, cluster, "none", order=[3, 2, 1, 0])
    scaled = scaled_problem(problem, bandwidth=0.25, ends=1.5)
    assert scaled.ranks.tolist() == [3, 2, 1, 0]
    found = scaled.cluster
    assert found.links == (Link("l", 4.0, 3.0), Link("m", 1.0))
    there, back = found.channels
    assert (there.bandwidth, there.latency_seconds) == (1.0, 3.0)
    assert (there.send, there.receive) == ((EndCost(0, 3, 6), EndCost(9, 12)), ())
    assert back == replace(cluster.channels[1], bandwidth=2.0)


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("p2.8xlarge", []),  # multicast
        ("k80x2", [("ends kept for 25% of a transfer", 1.25)]),
        ("p3.8xlarge-2", [("ends kept for 25% of a transfer", 1.25)]),
        (None, [("ends' costs −25%", 0.75), ("ends' costs +25%", 1.25)]),
    ],
)
def test_ends_are_a_case_where_they_may_cost_something(name, ends):
    known = with_channels(
        Channel("there", ("d0",), ("d1",), 1.0, receive=(EndCost(0, 1),)),
        Channel("back", ("d1",), ("d0",), 1.0, multicast=True),
    )
    found = cases(load_cluster(name) if name else known)
    assert [(each.name, each.ends) for each in found if each.ends != 1] == ends
    assert sum(each.bandwidth != 1 for each in found) == 2
    assert found[0].name == "as believed"


@given(data=st.data(), factor=st.sampled_from([0.5, 2.0]))
def test_a_step_in_which_everything_takes_twice_as_long_takes_twice_as_long(data, factor):
    made = data.draw(st.sampled_from([clusters, clusters_of_links]))
    problem = data.draw(problems(max_ops=20, made=made))
    devices = data.draw(placements(problem))
    cluster = problem.cluster

    def still(channel: Channel) -> Channel:
        """Without latency and overhead; what its ends cost is known."""
        if not channel.multicast:
            known = channel.send or (EndCost(0),)
            channel = replace(channel, send=known)
        bandwidth = 0.0 if channel.path else channel.bandwidth
        return replace(channel, bandwidth=bandwidth, latency_seconds=0.0, overhead_seconds=0.0)

    cluster = replace(
        cluster,
        devices=tuple(replace(each, launch_overhead_seconds=0.0) for each in cluster.devices),
        channels=tuple(still(each) for each in cluster.channels),
        links=tuple(replace(each, latency_seconds=0.0) for each in cluster.links),
    )
    problem = PlacementProblem(problem.graph, cluster, problem.op_group)
    step_time = simulate(problem, devices).step_time
    assume(np.isfinite(step_time))
    scaled = scaled_problem(problem, bandwidth=1 / factor, ends=factor, op_seconds=factor)
    assert simulate(scaled, devices).step_time == pytest.approx(factor * step_time)


@pytest.mark.parametrize(("seconds", "found"), [(4.0, None), (4.9, 1.1 * 9.8 + 12), (5.0, None)])
def test_a_win_that_a_tenth_undoes(seconds, found):
    # Bytes take no time. a [0, 1); sending `seconds`; b on d0 and c on d1 10 s each; c's output
    # is sent, `seconds` again, and d takes 1: 12 + 2 `seconds`. On one device 22: at 4 s it wins,
    # with a tenth more, too; at 4.9 it does not then; at 5 it does not win in the first place.
    graph = make_graph(
        {"a": 1.0, "b": 10.0, "c": 10.0, "d": 1.0},
        [("a", 0, ["b", "c"]), ("b", 0, ["d"]), ("c", 0, ["d"])],
    )
    ways = [("there", ("d0",), ("d1",)), ("back", ("d1",), ("d0",))]
    send = (EndCost(0, seconds),)
    cluster = with_channels(*(Channel(*way, bandwidth=1.0, send=send) for way in ways))
    problem = make_problem(graph, cluster)
    placement, single = (placement_of(problem, devices) for devices in (APART, [0, 0, 0, 0]))
    assert placement.step_time == pytest.approx(12 + 2 * seconds)
    assert loses_if_a_tenth_off(placement, single) == (found and pytest.approx(found))
    # What does not fit neither wins nor loses.
    assert loses_if_a_tenth_off(replace(placement, feasible=False), single) is None
    assert loses_if_a_tenth_off(placement, replace(single, feasible=False)) is None
