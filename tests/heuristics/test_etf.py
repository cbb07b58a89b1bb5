"""Earliest finish on problems worked out by hand, and against a plain one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, place
from placeto.cluster import EndCost
from placeto.heuristics.etf import earliest_finish
from tests.builders import make_cluster, make_graph
from tests.strategies import problems


def etf(graph, cluster, **pins):
    numbers = {graph.op_names.index(name): device for name, device in pins.items()}
    placement = place(PlacementProblem(graph, cluster, "none", pins=numbers), "etf")
    return dict(zip(graph.op_names, placement.devices.tolist(), strict=True)), placement


def test_a_fork_is_split():
    graph = make_graph(
        {"a": 1.0, "b": 10.0, "c": 10.0, "d": 1.0},
        [("a", 1, ["b", "c"]), ("b", 1, ["d"]), ("c", 1, ["d"])],
    )
    devices, placement = etf(graph, make_cluster(2))
    # b finishes at 11 on d0; c at 21 there, at 1 + 1 + 10 on d1. d waits for c: there it ends at
    # 13, on d0 it would wait for c's tensor until 13 and end at 14.
    assert devices == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert placement.step_time == 13.0


def test_a_fork_stays_where_the_transfer_takes_longer_than_the_queue():
    graph = make_graph({"a": 1.0, "b": 10.0, "c": 10.0}, [("a", 11, ["b", "c"])])
    devices, placement = etf(graph, make_cluster(2))
    # c at 21 on d0, at 1 + 11 + 10 = 22 on d1.
    assert devices == {"a": 0, "b": 0, "c": 0}
    assert placement.step_time == 21.0


def test_a_fork_stays_where_to_send_or_to_receive_takes_longer_than_the_queue():
    graph = make_graph({"a": 1.0, "b": 10.0, "c": 10.0}, [("a", 1, ["b", "c"])])
    cluster = make_cluster(2)
    assert etf(graph, cluster)[0] == {"a": 0, "b": 0, "c": 1}
    for end in ("send", "receive"):
        # c at 21 on d0; at 1 + 9.5 + 10 on d1, then at 1 + 11 + 10.
        for seconds, device in ((9.5, 1), (11.0, 0)):
            cost = {end: (EndCost(0, 1.0), EndCost(1, seconds))}
            channels = tuple(replace(channel, **cost) for channel in cluster.channels)
            devices, placement = etf(graph, replace(cluster, channels=channels))
            assert devices == {"a": 0, "b": 0, "c": device}
            assert placement.step_time == (20.5 if device else 21.0)


def test_a_chain_stays_together():
    names = [f"op{op}" for op in range(6)]
    tensors = [(a, 1, [b]) for a, b in pairwise(names)]
    devices, placement = etf(make_graph({name: 1.0 for name in names}, tensors), make_cluster(4))
    assert set(devices.values()) == {0}
    assert placement.step_time == 6.0


def test_two_chains_go_to_two_devices():
    graph = make_graph(
        {"a0": 2.0, "b0": 2.0, "a1": 2.0, "b1": 2.0}, [("a0", 1, ["a1"]), ("b0", 1, ["b1"])]
    )
    devices, placement = etf(graph, make_cluster(2))
    assert devices == {"a0": 0, "a1": 0, "b0": 1, "b1": 1}
    assert placement.step_time == 4.0


def test_memory_splits_what_would_stay_together():
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 1, ["b"])], param_bytes={"a": 6, "b": 6})
    roomy, _ = etf(graph, make_cluster(2, memory=13))
    assert roomy == {"a": 0, "b": 0}
    tight, placement = etf(graph, make_cluster(2, memory=12))  # a's output is a byte
    assert tight == {"a": 0, "b": 1}
    assert placement.feasible


def test_where_nothing_fits_the_device_with_most_room_is_taken():
    graph = make_graph({"a": 1.0}, param_bytes={"a": 9})
    devices = (Device("d0", "k", 4), Device("d1", "k", 8))
    channels = (Channel("c", ("d0", "d1"), ("d0", "d1"), 1.0),)
    placed, placement = etf(graph, Cluster("small", devices, channels))
    assert placed == {"a": 1}
    assert not placement.feasible


def test_a_pinned_group_uses_up_memory_before_any_choice():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 6, "b": 6})
    devices, _ = etf(graph, make_cluster(2, memory=10), b=0)
    assert devices == {"a": 1, "b": 0}


def test_the_slow_device_gets_what_the_fast_one_would_finish_later():
    graph = ComputationGraph(
        name="unequal",
        op_names=list("abcd"),
        op_types=["Op"] * 4,
        op_seconds={"fast": np.full(4, 1.0), "slow": np.full(4, 3.5)},
        tensor_producer=np.array([], dtype=np.int64),
        tensor_bytes=np.array([], dtype=np.int64),
        edge_tensor=np.array([], dtype=np.int64),
        edge_consumer=np.array([], dtype=np.int64),
    )
    devices = (Device("slow", "slow", 10**9), Device("fast", "fast", 10**9))
    channels = (Channel("c", ("slow", "fast"), ("slow", "fast"), 1.0),)
    placed, placement = etf(graph, Cluster("unequal", devices, channels))
    # The fast device finishes at 1, 2, 3; the fourth op there at 4, on the slow one at 3.5.
    assert placed == {"a": 1, "b": 1, "c": 1, "d": 0}
    assert placement.step_time == 3.5


def test_latency_is_part_of_the_finish():
    graph = make_graph({"a": 1.0, "b": 5.0, "c": 1.0}, [("a", 1, ["b", "c"])])
    # c ends at 1 + 5 + 1 on d0, at 1 + 1 + latency + 1 on d1.
    quick, _ = etf(graph, make_cluster(2, latency=3.0))
    assert quick == {"a": 0, "b": 0, "c": 1}
    late, _ = etf(graph, make_cluster(2, latency=5.0))
    assert late == {"a": 0, "b": 0, "c": 0}


def test_a_busy_channel_is_waited_for():
    # x's 4 bytes to the pinned y hold d0's channel from 1 to 5, so that b would start on d1 at 6
    # and on d0, behind a's 3 s, at 4.
    graph = make_graph(
        {"x": 1.0, "y": 1.0, "a": 3.0, "b": 3.0}, [("x", 4, ["y"]), ("x", 1, ["a", "b"])]
    )
    devices, _ = etf(graph, make_cluster(2), x=0, y=1)
    assert devices == {"x": 0, "y": 1, "a": 0, "b": 0}


def test_groups_in_topological_order_the_lowest_number_first():
    graph = make_graph({"late": 1.0, "a": 2.0, "b": 3.0, "c": 1.0}, [("a", 0, ["late"])])
    devices, placement = etf(graph, make_cluster(2))
    # a on d0 until 2, then late until 3 on either: the first. b on d1 until 3, c until 4 on either.
    assert devices == {"late": 0, "a": 0, "b": 1, "c": 0}
    assert placement.step_time == 4.0


@given(problems(), st.data())
def test_against_a_plain_one(problem, data):
    group = st.integers(0, problem.num_groups - 1)
    pins = {
        pinned: data.draw(st.sampled_from(np.flatnonzero(problem.allowed[pinned]).tolist()))
        for pinned in data.draw(st.sets(group, max_size=3))
    }
    problem = PlacementProblem(problem.graph, problem.cluster, problem.op_group, pins=pins)
    assert earliest_finish(problem).tolist() == plain(problem)


def plain(problem):
    cluster, memory = problem.cluster, problem.group_memory.tolist()
    room = [device.memory_bytes for device in cluster.devices]
    choices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    for group, devices in enumerate(choices):
        if len(devices) == 1:
            room[devices[0]] -= memory[group]
    free, channel_free = [0.0] * len(room), [0.0] * len(cluster.channels)
    edges = list(zip(*(column.tolist() for column in problem.group_edges), strict=True))
    finish, placed = {}, {}

    def arrival(group, device, busy):
        inputs = [(finish[s], s, size) for s, t, size in edges if t == group and s in placed]
        latest = 0.0
        for time, source, size in sorted(inputs):
            if placed[source] != device:
                number = cluster.channel_between[placed[source], device]
                channel = cluster.channels[number]
                sent = max(time, busy[number]) + size / channel.bandwidth
                busy[number] = sent + channel.overhead_seconds
                time = sent + channel.latency_seconds
            latest = max(latest, time)
        return latest

    for group in problem.group_order.tolist():
        devices = choices[group]
        if len(devices) > 1:
            fitting = [device for device in devices if room[device] >= memory[group]]
            devices = fitting or [max(devices, key=room.__getitem__)]
        ends = [
            max(arrival(group, device, list(channel_free)), free[device])
            + problem.group_seconds[group, device]
            for device in devices
        ]
        device = devices[ends.index(min(ends))]
        arrival(group, device, channel_free)
        placed[group], finish[group] = device, min(ends)
        free[device] = min(ends)
        if len(choices[group]) > 1:
            room[device] -= memory[group]
    return [placed[group] for group in range(problem.num_groups)]
