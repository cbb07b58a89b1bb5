"""HEFT on its paper's example, on problems worked out by hand, and against a plain one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem, place
from placeto.heuristics.heft import heterogeneous_earliest_finish, upward_ranks
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import problems

# Topcuoglu, Hariri & Wu (2002): the graph of figure 2, the ranks of table 2, the schedule of
# figure 3 (a).
SECONDS = [
    [14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10],
    [13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16],
]  # fmt: skip
EDGES = {
    (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16, (3, 7): 23,
    (4, 8): 27, (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11, (9, 10): 13,
}  # fmt: skip
RANKS = [108.0, 77.0, 80.0, 80.0, 69.0, 63.333, 42.667, 35.667, 44.333, 14.667]
DEVICES = [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]
FINISH = [9, 40, 28, 26, 38, 42, 49, 62, 68, 80]


def published() -> PlacementProblem:
    names = ["d1", "d2", "d3"]
    graph = ComputationGraph(
        name="published",
        op_names=[f"n{number}" for number in range(1, 11)],
        op_types=["Op"] * 10,
        op_seconds={
            name: column for name, column in zip(names, np.array(SECONDS, float).T, strict=True)
        },
        tensor_producer=np.array([source - 1 for source, _ in EDGES]),
        tensor_bytes=np.array(list(EDGES.values())),
        edge_tensor=np.arange(len(EDGES)),
        edge_consumer=np.array([target - 1 for _, target in EDGES]),
    )
    pairs = [(a, b) for a in names for b in names if a != b]
    return PlacementProblem(
        graph,
        Cluster(
            "published",
            tuple(Device(name, name, 10**9) for name in names),
            tuple(Channel(f"{a}-{b}", (a,), (b,), 1.0) for a, b in pairs),
        ),
        "none",
    )


def test_the_published_ranks():
    assert upward_ranks(published()).tolist() == pytest.approx(RANKS, abs=5e-4)


def test_the_published_schedule():
    schedule = heterogeneous_earliest_finish(published(), queues=False)
    assert (schedule.devices + 1).tolist() == DEVICES
    assert schedule.finish.tolist() == FINISH


def test_a_group_runs_in_an_idle_time_before_others():
    # By rank a, b, c, d. While d1 waits from 0 to 4 for a's 2 bytes, it has time for d.
    graph = make_graph({"a": 2.0, "b": 8.0, "c": 9.0, "d": 3.0}, [("a", 2, ["b", "c"])])
    problem = make_problem(graph, make_cluster(2))
    schedule = heterogeneous_earliest_finish(problem, queues=False)
    assert schedule.devices.tolist() == [0, 1, 0, 1]
    assert schedule.finish.tolist() == [2.0, 12.0, 11.0, 3.0]


def test_an_idle_time_that_is_too_short_is_left():
    graph = make_graph({"a": 2.0, "b": 8.0, "c": 9.0, "d": 4.5}, [("a", 2, ["b", "c"])])
    schedule = heterogeneous_earliest_finish(make_problem(graph, make_cluster(2)), queues=False)
    assert schedule.finish.tolist() == [2.0, 12.0, 11.0, 15.5]


def test_a_group_without_time_does_not_split_an_idle_time():
    # z, by rank before d, is on d1 at 3, in the idle time before b; d needs all of that time.
    graph = make_graph(
        {"a": 2.0, "b": 8.0, "c": 9.0, "z": 0.0, "w": 5.0, "d": 4.0},
        [("a", 2, ["b", "c"]), ("a", 1, ["z"]), ("z", 1, ["w"])],
    )
    pins = {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 5: 1}
    problem = PlacementProblem(graph, make_cluster(2), "none", pins=pins)
    schedule = heterogeneous_earliest_finish(problem, queues=False)
    assert schedule.finish.tolist() == [2.0, 12.0, 11.0, 3.0, 16.0, 4.0]


def test_the_start_up_of_transfers_counts_in_the_rank():
    graph = make_graph({"a": 1.0, "b": 2.0}, [("a", 4, ["b"])])
    problem = make_problem(graph, make_cluster(2, bandwidth=2.0, latency=3.0, overhead=5.0))
    assert upward_ranks(problem).tolist() == [1.0 + (3.0 + 5.0 + 2.0) + 2.0, 2.0]


def test_channels_that_are_queues():
    # a's 3 bytes to c on d2 have to wait on d0's channel until those to b on d1 are through at 4.
    graph = make_graph({"a": 1.0, "b": 4.0, "c": 2.0}, [("a", 3, ["b"]), ("a", 3, ["c"])])
    problem = PlacementProblem(graph, make_cluster(3), "none", pins={0: 0, 1: 1, 2: 2})
    apart = heterogeneous_earliest_finish(problem, queues=False)
    assert apart.finish.tolist() == [1.0, 8.0, 6.0]
    queued = heterogeneous_earliest_finish(problem, queues=True)
    assert queued.finish.tolist() == [1.0, 8.0, 9.0]


def test_memory_splits_what_would_stay_together():
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 1, ["b"])], param_bytes={"a": 6, "b": 6})
    assert place(make_problem(graph, make_cluster(2, memory=13)), "heft").devices.tolist() == [0, 0]
    tight = place(make_problem(graph, make_cluster(2, memory=12)), "heft")
    assert tight.devices.tolist() == [0, 1]
    assert tight.feasible


@given(problem=problems(max_ops=30), queues=st.booleans())
def test_against_a_plain_one(problem, queues):
    schedule = heterogeneous_earliest_finish(problem, queues=queues)
    devices, finish = plain(problem, upward_ranks(problem).tolist(), queues)
    assert schedule.devices.tolist() == devices
    assert schedule.finish.tolist() == finish


def plain(problem, ranks, queues):
    """The same by rank, with every idle time looked at."""
    cluster, memory = problem.cluster, problem.group_memory.tolist()
    room = [device.memory_bytes for device in cluster.devices]
    choices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    for group, devices in enumerate(choices):
        if len(devices) == 1:
            room[devices[0]] -= memory[group]
    position = problem.group_position.tolist()
    edges = [
        (source, target, size)
        for source, target, size in zip(*(c.tolist() for c in problem.group_edges), strict=True)
        if position[source] < position[target]
    ]
    busy = [[] for _ in room]
    channel_free = [0.0] * len(cluster.channels)
    finish, placed = {}, {}

    def arrival(group, device, channel_free):
        inputs = sorted((finish[s], s, size) for s, t, size in edges if t == group)
        latest = 0.0
        for time, source, size in inputs:
            if placed[source] != device:
                number = cluster.channel_between[placed[source], device]
                channel = cluster.channels[number]
                begin = max(time, channel_free[number]) if queues else time
                sent = begin + size / channel.bandwidth
                channel_free[number] = sent + channel.overhead_seconds
                time = sent + channel.latency_seconds
            latest = max(latest, time)
        return latest

    def first_start(device, ready, seconds):
        ends = [0.0, *(end for _, end in sorted(busy[device]))]
        begins = [*(begin for begin, _ in sorted(busy[device])), float("inf")]
        return next(
            max(ready, idle)
            for idle, until in zip(ends, begins, strict=True)
            if idle < until and max(ready, idle) + seconds <= until
        )

    for group in sorted(range(problem.num_groups), key=lambda g: (-ranks[g], position[g])):
        devices = choices[group]
        if len(devices) > 1:
            fitting = [device for device in devices if room[device] >= memory[group]]
            devices = fitting or [max(devices, key=room.__getitem__)]
        seconds = problem.group_seconds[group].tolist()
        starts = {
            d: first_start(d, arrival(group, d, list(channel_free)), seconds[d]) for d in devices
        }
        device = min(devices, key=lambda d: starts[d] + seconds[d])
        arrival(group, device, channel_free)
        placed[group], finish[group] = device, starts[device] + seconds[device]
        if seconds[device] > 0:
            busy[device].append((starts[device], finish[group]))
        if len(choices[group]) > 1:
            room[device] -= memory[group]
    groups = range(problem.num_groups)
    return [placed[group] for group in groups], [finish[group] for group in groups]
