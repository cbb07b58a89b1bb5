"""Earliest start by hand, against a plain one, and within what is proven of it."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import Channel, Cluster, ComputationGraph, Device, PlacementProblem
from placeto.heuristics.baechi import favourite_children
from placeto.heuristics.costs import fastest_devices, links
from placeto.heuristics.earliest_start import earliest_start
from tests.builders import make_cluster, make_graph, make_problem
from tests.heuristics.contention_free import check_schedule, shortest, tasks
from tests.strategies import problems


def test_the_group_that_can_start_first_goes_first():
    # c is after b in topological order, but can start at 1; b's input is there at 1 + 3 or, on d0,
    # at 2, when a2 is through.
    graph = make_graph(
        {"a": 1.0, "a2": 5.0, "b": 1.0, "c": 1.0}, [("a", 3, ["b"]), ("a", 0, ["c", "a2"])]
    )
    schedule = earliest_start(make_problem(graph, make_cluster(2)))
    assert schedule.devices.tolist() == [0, 0, 1, 1]
    assert schedule.finish.tolist() == [1.0, 6.0, 5.0, 2.0]


def test_of_equal_starts_the_device_where_the_inputs_are_first():
    # At 5 both devices are through with p and with q and r; q's output is on d1 since 3, on d0
    # since 4.
    graph = make_graph({"p": 5.0, "q": 3.0, "r": 2.0, "c": 1.0}, [("q", 1, ["c"])])
    schedule = earliest_start(make_problem(graph, make_cluster(2)))
    assert schedule.devices.tolist() == [0, 1, 1, 1]
    # An output that is on both at 5: the lowest.
    graph = make_graph({"p": 5.0, "q": 4.0, "c": 1.0}, [("q", 1, ["c"]), ("p", 0, ["c"])])
    schedule = earliest_start(make_problem(graph, make_cluster(2)))
    assert schedule.devices.tolist() == [0, 1, 0]


def test_overhead_and_latency_are_the_start_up_of_a_transfer():
    graph = make_graph({"a": 1.0, "b": 9.0, "c": 1.0}, [("a", 4, ["b", "c"])])
    cluster = make_cluster(2, bandwidth=2.0, latency=0.5, overhead=1.5)
    schedule = earliest_start(make_problem(graph, cluster))
    assert schedule.devices.tolist() == [0, 0, 1]
    assert schedule.finish.tolist() == [1.0, 10.0, 1.0 + 1.5 + 0.5 + 2.0 + 1.0]


def test_a_device_waits_for_the_favourite_child():
    # Idle d1 could take b at 2 and d0 at 1. Once a is through at 1, c, its favourite child, waits
    # for e's 1 byte until 3.
    graph = make_graph(
        {"a": 1.0, "e": 2.0, "b": 2.0, "c": 1.0},
        [("a", 3, ["c"]), ("e", 1, ["c"]), ("a", 1, ["b"])],
    )
    problem = make_problem(graph, make_cluster(2))
    assert earliest_start(problem).devices.tolist() == [0, 1, 0, 0]
    favoured = earliest_start(problem, np.array([3, -1, -1, -1]))
    assert favoured.devices.tolist() == [0, 1, 1, 0]
    assert favoured.finish.tolist() == [1.0, 2.0, 4.0, 4.0]


def test_a_waiting_device_runs_what_is_urgent():
    # The same, with x, whose inputs are everywhere: d0 runs it from 1 to 2 and then c at 3.
    graph = make_graph({"a": 1.0, "e": 2.0, "c": 1.0, "x": 1.0}, [("a", 3, ["c"]), ("e", 1, ["c"])])
    problem = make_problem(graph, make_cluster(2))
    schedule = earliest_start(problem, np.array([2, -1, -1, -1]))
    assert schedule.devices.tolist() == [0, 1, 0, 0]
    assert schedule.finish.tolist() == [1.0, 2.0, 4.0, 2.0]


def test_urgent_is_what_is_on_every_device():
    # d0 waits for c until f's byte is there at 7. b's input is on d1 since 2, on d0 at 8 only.
    graph = make_graph(
        {"a": 1.0, "e": 2.0, "f": 4.0, "b": 2.0, "c": 1.0},
        [("a", 10, ["c"]), ("f", 1, ["c"]), ("e", 6, ["b"])],
    )
    problem = PlacementProblem(graph, make_cluster(2), "none", pins={1: 1, 2: 1})
    schedule = earliest_start(problem, np.array([4, -1, -1, -1, -1]))
    assert schedule.devices.tolist() == [0, 1, 1, 1, 0]
    assert schedule.finish.tolist() == [1.0, 2.0, 6.0, 8.0, 8.0]


def test_a_device_waits_no_longer_than_the_transfer_takes():
    # e's output is there at 9 only: d0 waits for c from 1 to 1 + 3, then takes b.
    graph = make_graph(
        {"a": 1.0, "e": 8.0, "b": 2.0, "c": 1.0},
        [("a", 3, ["c"]), ("e", 1, ["c"]), ("a", 6, ["b"])],
    )
    schedule = earliest_start(make_problem(graph, make_cluster(2)), np.array([3, -1, -1, -1]))
    assert schedule.finish[2] == 6.0


def test_memory_sends_groups_to_another_device_then_to_the_roomiest():
    names = ["a", "b", "c"]
    graph = make_graph(
        {name: 1.0 for name in names},
        [("a", 1, ["b"]), ("b", 1, ["c"])],
        param_bytes={"a": 4, "b": 4, "c": 4},
    )
    devices = {
        memory: earliest_start(make_problem(graph, make_cluster(2, memory=memory))).devices.tolist()
        for memory in (14, 13, 9, 8, 4)
    }
    # They take 5, 5 and 4 bytes. With 8 there is no room for c, with 4 none for anything.
    expected = {14: [0, 0, 0], 13: [0, 0, 1], 9: [0, 1, 1], 8: [0, 1, 0], 4: [0, 1, 0]}
    assert devices == expected


def test_the_slow_kind_is_used_only_for_what_has_no_room_on_the_fast_one():
    graph = ComputationGraph(
        name="unequal",
        op_names=list("abc"),
        op_types=["Op"] * 3,
        op_seconds={"fast": np.full(3, 1.0), "slow": np.full(3, 3.5)},
        tensor_producer=np.array([], dtype=np.int64),
        tensor_bytes=np.array([], dtype=np.int64),
        edge_tensor=np.array([], dtype=np.int64),
        edge_consumer=np.array([], dtype=np.int64),
        param_bytes=np.array([4, 4, 4]),
    )
    devices = (Device("slow", "slow", 100), Device("fast", "fast", 8))
    channels = (Channel("c", ("slow", "fast"), ("slow", "fast"), 1.0),)
    problem = PlacementProblem(graph, Cluster("unequal", devices, channels), "none")
    assert earliest_start(problem).devices.tolist() == [1, 1, 0]


@given(problem=problems(max_ops=25))
def test_against_a_plain_one(problem):
    expected = plain(problem)
    assume(expected is not None)
    devices, finish = expected
    schedule = earliest_start(problem)
    assert schedule.devices.tolist() == devices
    assert schedule.finish.tolist() == finish


@given(tasks(max_tasks=30, max_devices=5))
def test_no_longer_than_work_chain_and_transfers_allow(drawn):
    schedule = earliest_start(drawn.problem())
    check_schedule(drawn, *schedule)
    # What the proof of Hwang, Chow, Anger & Lee (1989) bounds the schedule by: some chain covers
    # all the time in which a device is idle, but for the transfers along it. Without transfers
    # that is Graham's (1966).
    m = drawn.devices
    work, chain, transfers = sum(drawn.seconds), drawn.longest_chain, drawn.longest_transfers
    assert schedule.finish.max() <= work / m + (1 - 1 / m) * chain + transfers + 1e-9


@given(tasks(max_tasks=6))
def test_no_longer_than_twice_the_optimum_and_transfers(drawn):
    m, best = drawn.devices, shortest(drawn, transfers=False)
    bound = (2 - 1 / m) * best + drawn.longest_transfers
    assert earliest_start(drawn.problem()).finish.max() <= bound + 1e-9


@given(tasks(max_tasks=6, sizes=(0, 0)))
def test_no_longer_than_twice_the_optimum_without_transfers(drawn):
    bound = (2 - 1 / drawn.devices) * shortest(drawn, transfers=True)
    assert earliest_start(drawn.problem()).finish.max() <= bound + 1e-9


@given(tasks(max_tasks=6, seconds=(3, 6), sizes=(0, 3)))
def test_favourite_children_keep_within_the_bound_for_small_communication(drawn):
    problem = drawn.problem()
    schedule = earliest_start(problem, favourite_children(problem, 10.0))
    check_schedule(drawn, *schedule)
    # Hanen & Munier (1995), for transfers that take no more than rho times any task's seconds,
    # rho <= 1; 7/3 - 4/(3 m) for tasks and transfers of one length.
    m = drawn.devices
    rho = max(drawn.edges.values(), default=0) / min(drawn.seconds)
    ratio = 1 + (1 - 1 / m) * (2 + 2 * rho) / (2 + rho)
    assert schedule.finish.max() <= ratio * shortest(drawn, transfers=True) + 1e-9


@given(problem=problems(max_ops=25), data=st.data())
def test_memory_and_favourites_leave_no_group_out(problem, data):
    favourite = np.full(problem.num_groups, -1)
    parents = {}
    for source, target, _ in zip(*problem.group_edges, strict=True):
        if problem.group_position[source] < problem.group_position[target]:
            parents.setdefault(target, []).append(source)
    for child, choices in parents.items():
        parent = data.draw(st.sampled_from([None, *choices]))
        if parent is not None and favourite[parent] < 0:
            favourite[parent] = child
    schedule = earliest_start(problem, favourite)
    groups = np.arange(problem.num_groups)
    assert problem.allowed[groups, schedule.devices].all()
    start = schedule.finish - problem.group_seconds[groups, schedule.devices]
    startup, pace = links(problem)
    for source, target, size in zip(*problem.group_edges, strict=True):
        if problem.group_position[source] < problem.group_position[target]:
            pair = schedule.devices[source], schedule.devices[target]
            there = schedule.finish[source] + startup[pair] + size * pace[pair]
            assert start[target] >= there * (1 - 1e-12)


def plain(problem: PlacementProblem):
    """All pairs looked at in every step; None where memory would have a say."""
    memory, position = problem.group_memory.tolist(), problem.group_position.tolist()
    allowed = [np.flatnonzero(row).tolist() for row in problem.allowed]
    fast = fastest_devices(problem)
    preferred = [[d for d in devices if fast[d]] or devices for devices in allowed]
    room = problem.memory_limit.tolist()
    for group, devices in enumerate(allowed):
        if len(devices) == 1:
            room[devices[0]] -= memory[group]
    startup, pace = links(problem)
    inputs = [[] for _ in allowed]
    for source, target, size in zip(*(c.tolist() for c in problem.group_edges), strict=True):
        if position[source] < position[target]:
            inputs[target].append((source, size))
    free = [0.0] * len(room)
    placed, finish = {}, {}

    def fits(group, device):
        return len(allowed[group]) == 1 or room[device] >= memory[group]

    def arrival(group, device):
        return max(
            (
                finish[s] + (startup[placed[s], device] + size * pace[placed[s], device])
                for s, size in inputs[group]
            ),
            default=0.0,
        )

    while len(placed) < len(allowed):
        ready = [g for g in range(len(allowed)) if g not in placed]
        ready = [g for g in ready if all(s in placed for s, _ in inputs[g])]
        if any(not fits(g, d) for g in ready for d in preferred[g]):
            return None
        start, *_, device, group = min(
            (max(free[d], arrival(g, d)), position[g], arrival(g, d), d, g)
            for g in ready
            for d in preferred[g]
        )
        placed[group] = device
        finish[group] = free[device] = start + problem.group_seconds[group, device]
        if len(allowed[group]) > 1:
            room[device] -= memory[group]
    return [placed[g] for g in range(len(allowed))], [finish[g] for g in range(len(allowed))]
