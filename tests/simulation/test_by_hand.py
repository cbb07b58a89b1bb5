"""Schedules worked out by hand, one comment each. Times in seconds, bandwidth 1 byte/s."""

from dataclasses import replace

import numpy as np
import pytest

import placeto
from placeto import (
    Channel,
    Cluster,
    Device,
    EndCost,
    Link,
    PlacementProblem,
    Schedule,
    place,
    simulate,
)
from placeto.bounds import critical_path, lower_bound
from tests.builders import make_cluster, make_graph, make_problem


def times(schedule: Schedule) -> list[tuple[float, float]]:
    return list(zip(schedule.start.tolist(), schedule.finish.tolist(), strict=True))


def carried(schedule: Schedule) -> list[tuple[int, list[int], float, float, float, float]]:
    """(tensor, destinations, request, start, sent, arrival), by start and then by channel."""
    found = schedule.transfers
    return [
        (
            int(found.tensor[i]),
            np.flatnonzero(found.destinations[i]).tolist(),
            *(float(column[i]) for column in (found.request, found.start)),
            *(float(column[i]) for column in (found.sent, found.arrival)),
        )
        for i in np.lexsort((found.channel, found.start))
    ]


def test_chain_over_two_devices() -> None:
    # a [0, 2) on d0; its 3 bytes travel [2, 5); b [5, 9) on d1; its 1 byte travels back [9, 10);
    # c [10, 11) on d0.
    graph = make_graph({"a": 2, "b": 4, "c": 1}, [("a", 3, ["b"]), ("b", 1, ["c"])])
    schedule = simulate(make_problem(graph, make_cluster(2)), [0, 1, 0])
    assert times(schedule) == [(0, 2), (5, 9), (10, 11)]
    assert carried(schedule) == [(0, [1], 2, 2, 5, 5), (1, [0], 9, 9, 10, 10)]
    assert schedule.step_time == 11


def test_fork_shares_a_copy() -> None:
    # a [0, 1) on d0 feeds b, c on d1 and e on d0 with one tensor of 4 bytes. One transfer,
    # [1, 5), serves both b [5, 6) and c [6, 7), in op order. e starts at once: [1, 2).
    graph = make_graph({"a": 1, "b": 1, "c": 1, "e": 1}, [("a", 4, ["b", "c", "e"])])
    schedule = simulate(make_problem(graph, make_cluster(2)), [0, 1, 1, 0])
    assert carried(schedule) == [(0, [1], 1, 1, 5, 5)]
    assert times(schedule) == [(0, 1), (5, 6), (6, 7), (1, 2)]


def test_two_tensors_to_one_consumer_are_two_transfers() -> None:
    # a [0, 1) has two outputs of 2 bytes, both read by b on d1: [1, 3) and [3, 5), b [5, 6).
    graph = make_graph({"a": 1, "b": 1}, [("a", 2, ["b"]), ("a", 2, ["b"])])
    schedule = simulate(make_problem(graph, make_cluster(2)), [0, 1])
    assert carried(schedule) == [(0, [1], 1, 1, 3, 3), (1, [1], 1, 3, 5, 5)]
    assert times(schedule) == [(0, 1), (5, 6)]


def test_ranks_before_first_come_first_served() -> None:
    # a [0, 2) and b [0, 1) on d0 and d1; c, d and e on d0 are ready at 0, 1 and 2, d by a control
    # dependency. First come, first served: c [2, 3), d [3, 4), e [4, 5).
    graph = make_graph({"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}, [("b", 0, ["d"]), ("a", 4, ["e"])])
    devices = [0, 1, 0, 0, 0]
    first = PlacementProblem(graph, make_cluster(2), "none")
    assert times(simulate(first, devices)) == [(0, 2), (0, 1), (2, 3), (3, 4), (4, 5)]
    # At 2 e goes first by its rank; then d and c, of equal ranks, by when they were ready.
    ranks = [0, 7, 2.5, 2.5, 1]
    ranked = PlacementProblem(graph, make_cluster(2), "none", order=ranks)
    assert times(simulate(ranked, devices)) == [(0, 2), (0, 1), (3, 4), (4, 5), (2, 3)]
    # And d before c.
    ranked = PlacementProblem(graph, make_cluster(2), "none", order=[0, 7, 3, 2.5, 1])
    assert times(simulate(ranked, devices)) == [(0, 2), (0, 1), (4, 5), (3, 4), (2, 3)]


def test_what_is_ready_with_a_lower_rank_later_does_not_wait_for_what_was_there_before() -> None:
    # A device is never kept free for what is to come: c [0, 5), though b, before it by rank, is
    # ready at 1. The empty d waits for its turn by its rank, after b and before e.
    graph = make_graph(
        {"a": 1, "b": 1, "c": 5, "d": 0, "e": 1, "f": 1}, [("a", 0, ["b"]), ("d", 0, ["f"])]
    )
    problem = PlacementProblem(graph, make_cluster(2), "none", order=[0, 1, 2, 3, 4, 0])
    schedule = simulate(problem, [1, 0, 0, 0, 0, 0])
    assert times(schedule) == [(0, 1), (5, 6), (0, 5), (6, 6), (7, 8), (6, 7)]


FORK = make_graph({"a": 1, "b": 1, "c": 1}, [("a", 4, ["c", "b"])])


def test_without_multicast_one_transfer_a_destination() -> None:
    # a [0, 1) on d0; b on d1 and c on d2 read its 4 bytes. b is the lower consumer: its transfer
    # is [1, 5), the channel rests until 6, and the transfer for c is [6, 10).
    schedule = simulate(make_problem(FORK, make_cluster(3, overhead=1)), [0, 1, 2])
    assert carried(schedule) == [(0, [1], 1, 1, 5, 5), (0, [2], 1, 6, 10, 10)]
    assert times(schedule) == [(0, 1), (5, 6), (10, 11)]


def test_with_multicast_one_transfer_serves_all() -> None:
    # As above, but one transfer [1, 5) serves b and c.
    schedule = simulate(make_problem(FORK, make_cluster(3, overhead=1, multicast=True)), [0, 1, 2])
    assert carried(schedule) == [(0, [1, 2], 1, 1, 5, 5)]
    assert times(schedule) == [(0, 1), (5, 6), (5, 6)]


@pytest.mark.parametrize(("shared", "second"), [(True, 4), (False, 2)])
def test_a_shared_channel_queues(shared: bool, second: float) -> None:
    # a [0, 1) on d0 sends 3 bytes to c on d1: [1, 4). b [0, 2) on d1 sends 2 bytes to e on d0,
    # requested at 2. On one channel for all it waits until 4: [4, 6); on its own it is [2, 4).
    graph = make_graph({"a": 1, "b": 2, "c": 1, "e": 1}, [("a", 3, ["c"]), ("b", 2, ["e"])])
    schedule = simulate(make_problem(graph, make_cluster(2, shared=shared)), [0, 1, 1, 0])
    assert carried(schedule) == [
        (0, [1], 1, 1, 4, 4),
        (1, [0], 2, second, second + 2, second + 2),
    ]
    assert times(schedule) == [(0, 1), (0, 2), (4, 5), (second + 2, second + 3)]


def test_ties_go_by_op_order() -> None:
    # Nothing waits for anything: d0 runs a, c, then e; d1 runs b.
    schedule = simulate(
        make_problem(make_graph({"a": 1, "b": 1, "c": 1, "e": 1}), make_cluster(2)), [0, 1, 0, 0]
    )
    assert times(schedule) == [(0, 1), (0, 1), (1, 2), (2, 3)]


def test_first_ready_goes_before_lower_number() -> None:
    # On d0: z [0, 3). e (number 2) is ready at 1 when b on d1 finishes and sends 0 bytes; a
    # (number 0) is ready at 2, after c on d1. e goes first, though a has the lower number.
    graph = make_graph(
        {"a": 1, "z": 3, "e": 1, "b": 1, "c": 1}, [("b", 0, ["e", "c"]), ("c", 0, ["a"])]
    )
    schedule = simulate(make_problem(graph, make_cluster(2)), [0, 0, 0, 1, 1])
    assert times(schedule) == [(4, 5), (0, 3), (3, 4), (0, 1), (1, 2)]


def test_requests_of_one_instant_go_by_lowest_consumer_then_tensor() -> None:
    # a and b both finish at 1 on d0. Tensor 0 (a's, 2 bytes) goes to f on d1, number 4; tensor 1
    # (b's, 1 byte) to e, number 3, and to f; tensor 2 (a's, 3 bytes) to e too. Lowest consumer
    # that waits: tensor 1 and 2 e, tensor 0 f. So 1 [1, 2), 2 [2, 5), 0 [5, 7).
    # But a runs first, [0, 1), so b must be elsewhere to finish at 1 as well: on d2, over a
    # channel that all share.
    graph = make_graph(
        {"a": 1, "b": 1, "c": 0, "e": 1, "f": 1},
        [("a", 2, ["f"]), ("b", 1, ["e", "f"]), ("a", 3, ["e"])],
    )
    schedule = simulate(make_problem(graph, make_cluster(3, shared=True)), [0, 2, 0, 1, 1])
    assert [(row[0], row[3], row[4]) for row in carried(schedule)] == [
        (1, 1, 2),
        (2, 2, 5),
        (0, 5, 7),
    ]
    assert times(schedule) == [(0, 1), (0, 1), (1, 1), (5, 6), (7, 8)]


def test_zero_durations_chain_within_an_instant() -> None:
    # At 0 d0 has a (zero) and c [1 s] ready. a runs and finishes at 0, and b, ready at 0 as c is,
    # has the lower number: b [0, 2) goes before c [2, 3).
    graph = make_graph({"a": 0, "b": 2, "c": 1}, [("a", 1, ["b"])])
    schedule = simulate(make_problem(graph, make_cluster(1)), [0, 0, 0])
    assert times(schedule) == [(0, 0), (0, 2), (2, 3)]


def test_channels_start_before_devices_within_an_instant() -> None:
    # At 0 a (zero, d0) finishes; its empty tensor goes to c on d1 within the instant, where b is
    # still waiting too since d0, the lower device, was served first: b and c are both ready at 0
    # and go in op order.
    graph = make_graph({"a": 0, "c": 1, "b": 1}, [("a", 0, ["c"])])
    schedule = simulate(make_problem(graph, make_cluster(2)), [0, 1, 1])
    assert times(schedule) == [(0, 0), (0, 1), (1, 2)]
    # With a on d1 and b, c on d0, the lower device d0 starts b before a has run.
    schedule = simulate(make_problem(graph, make_cluster(2)), [1, 0, 0])
    assert times(schedule) == [(0, 0), (1, 2), (0, 1)]


def test_launch_overhead_holds_after_ops_of_some_duration_only() -> None:
    # a [0, 1) holds d0 until 1.5; the empty b [1.5, 1.5) holds it for no longer; c [1.5, 2.5).
    # The overhead after c is no part of the step.
    graph = make_graph({"a": 1, "b": 0, "c": 1})
    schedule = simulate(make_problem(graph, make_cluster(1, launch_overhead=0.5)), [0, 0, 0])
    assert times(schedule) == [(0, 1), (1.5, 1.5), (1.5, 2.5)]
    assert schedule.step_time == 2.5


def test_outputs_leave_before_the_launch_overhead_ends() -> None:
    # a [0, 1) on d0, b on d1 reads 1 byte: [1, 2). d0's overhead until 11 holds nobody else up.
    graph = make_graph({"a": 1, "b": 1}, [("a", 1, ["b"])])
    schedule = simulate(make_problem(graph, make_cluster(2, launch_overhead=10)), [0, 1])
    assert times(schedule) == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("latency", "overhead", "first", "second"),
    [(5, 0, 8, 10), (0, 5, 3, 10), (5, 5, 8, 15), (0, 0, 3, 5)],
)
def test_latency_delays_arrival_and_overhead_the_next_transfer(
    latency: float, overhead: float, first: float, second: float
) -> None:
    # a [0, 1) sends 2 bytes to b and then 2 to c, both on d1. The first is sent at 3 and arrives
    # at 3 + latency; the second starts at 3 + overhead and is sent 2 s after that.
    graph = make_graph({"a": 1, "b": 0, "c": 0}, [("a", 2, ["b"]), ("a", 2, ["c"])])
    cluster = make_cluster(2, latency=latency, overhead=overhead)
    schedule = simulate(make_problem(graph, cluster), [0, 1, 1])
    assert schedule.start.tolist() == [0, first, second]
    assert schedule.transfers.start.tolist() == [1, 3 + overhead]
    assert schedule.transfers.sent.tolist() == [3, 5 + overhead]


def test_memory_by_hand() -> None:
    # d0: a has 100 bytes of parameters, throughout. a [0, 1) puts out 10 bytes (t0, for b on d0
    # and c on d1) and 20 bytes (t1, for nobody), with 5 temporary bytes. So 135 in [0, 1).
    # At 1, t1 and the temporary bytes go, b [1, 2) starts and puts out 40 (t2, for c): 150.
    # t0 goes to d1 in [1, 11); t0 stays on d0 until then: 150 in [1, 11). t2 is sent after it,
    # [11, 51): 140. The peak of d0 is 150, reached although 135 + 40 > 150, since what ends and
    # what starts at one instant count together.
    # d1: t0's copy from 1, t2's copy from 11; c [51, 52) with 1 byte of output and 3 temporary:
    # 10 + 40 + 4 = 54.
    graph = make_graph(
        {"a": 1, "b": 1, "c": 1},
        [("a", 10, ["b", "c"]), ("a", 20, []), ("b", 40, ["c"]), ("c", 1, [])],
        param_bytes={"a": 100},
        temp_bytes={"a": 5, "c": 3},
    )
    schedule = simulate(make_problem(graph, make_cluster(2, memory=150)), [0, 0, 1])
    assert times(schedule) == [(0, 1), (1, 2), (51, 52)]
    assert schedule.peak_memory.tolist() == [150, 54]
    assert schedule.feasible
    assert not simulate(make_problem(graph, make_cluster(2, memory=149)), [0, 0, 1]).feasible


def test_zero_duration_holds_no_memory_of_its_own() -> None:
    # a has no duration: its temporary bytes and the output that nobody reads never live.
    graph = make_graph({"a": 0}, [("a", 7, [])], param_bytes={"a": 2}, temp_bytes={"a": 9})
    schedule = simulate(make_problem(graph, make_cluster(1)), [0])
    assert schedule.peak_memory.tolist() == [2]


def test_device_that_cannot_run_an_op() -> None:
    # b cannot run on d1: it starts there at 2 and never ends, and c, which reads it, waits on.
    graph = make_graph({"a": 1, "b": 1, "c": 1}, [("a", 1, ["b"]), ("b", 1, ["c"])])
    seconds = {"k": graph.op_seconds["k"], "other": np.array([1, np.inf, 1])}
    graph = placeto.ComputationGraph(
        "two kinds", graph.op_names, graph.op_types, seconds, graph.tensor_producer,
        graph.tensor_bytes, graph.edge_tensor, graph.edge_consumer,
    )  # fmt: skip
    cluster = Cluster(
        "two kinds",
        (Device("d0", "k", 100), Device("d1", "other", 100)),
        (Channel("out", ("d0",), ("d1",), 1.0), Channel("back", ("d1",), ("d0",), 1.0)),
    )
    problem = PlacementProblem(graph, cluster, "none")
    assert problem.allowed.tolist() == [[True, True], [True, False], [True, True]]
    schedule = simulate(problem, [0, 1, 0])
    assert times(schedule)[:2] == [(0, 1), (2, np.inf)]
    assert schedule.step_time == np.inf
    assert not schedule.feasible
    assert simulate(problem, [1, 0, 1]).feasible


def test_a_step_on_two_hosts_flows_through_links_and_keeps_the_ends() -> None:
    # That of docs/simulator.md, in ms and MB. a [0, 1) on gpu0, which sends t0 [1.00, 1.22) and t1
    # [1.22, 1.29), and rests for as much longer as they take, until 1.30: b [1.30, 3.30). t0 is
    # on `out` [1.00, 1.40), which what enters takes 0.1 to pass, and on `in` [1.10, 1.90); t1
    # [1.40, 1.50) and [1.90, 2.10). gpu1 receives t0 [1.10, 1.60) and t1 [1.90, 1.91) beside e,
    # which therefore ends at 2.01 and not at 1.50. t1's last byte is there at 2.10, and c runs
    # [2.10, 5.10). t3 is on `back` [5.10, 5.20), and gpu0 receives it [5.20, 5.21), but its last
    # byte is there at 5.30.
    graph = make_graph(
        {"a": 1, "b": 2, "c": 3, "d": 1, "e": 1.5},
        [("a", 4 * 10**6, ["b", "c"]), ("a", 10**6, ["c"]), ("b", 2 * 10**6, ["d"]),
         ("c", 10**6, ["d"])],
        param_bytes={"b": 8 * 10**6, "c": 6 * 10**6}, temp_bytes={"c": 2 * 10**6},
    )  # fmt: skip
    cluster = Cluster(
        "hosts",
        (Device("gpu0", "k", 10**9, 0.01), Device("gpu1", "k", 10**9, 0.01)),
        (
            Channel("there", ("gpu0",), ("gpu1",), path=("out", "in"),
                    send=(EndCost(0, 0.02, 0.05e-6),),
                    receive=(EndCost(0, 0.01), EndCost(2**20, 0.1, 0.1e-6))),
            Channel("back", ("gpu1",), ("gpu0",), 10e6, 0.1, 0.05, receive=(EndCost(0, 0.01),)),
        ),
        links=(Link("out", 10e6, 0.1), Link("in", 5e6)),
    )  # fmt: skip
    schedule = simulate(make_problem(graph, cluster), [0, 0, 1, 0, 1])
    assert schedule.start.tolist() == pytest.approx([0, 1.3, 2.1, 5.3, 0])
    assert schedule.finish.tolist() == pytest.approx([1, 3.3, 5.1, 6.3, 2.01])
    assert schedule.step_time == pytest.approx(6.3)
    found = schedule.transfers
    assert found.tensor.tolist() == [0, 1, 3]
    assert found.request.tolist() == pytest.approx([1, 1, 5.1])
    assert found.start.tolist() == pytest.approx([1, 1.22, 5.1])
    assert found.arrival.tolist() == pytest.approx([1.9, 2.1, 5.3])
    assert schedule.peak_memory.tolist() == [15 * 10**6, 14 * 10**6]
    assert simulate(make_problem(graph, cluster), [0] * 5).step_time == pytest.approx(8.54)


def two_hosts(*channels: Channel) -> Cluster:
    """d0 and d1 in one host, d2 and d3 in another; ways out 1 byte/s and 1 s, way in 2 bytes/s."""
    inside = [Channel(f"{a}{b}", (a, b), (a, b), 1.0) for a, b in (("d0", "d1"), ("d2", "d3"))]
    back = Channel("back", ("d2", "d3"), ("d0", "d1"), 1.0)
    return Cluster(
        "hosts",
        tuple(Device(f"d{index}", "k", 100) for index in range(4)),
        (*channels, *inside, back),
        links=(Link("out", 1.0, 1.0), Link("more", 1.0, 1.0), Link("in", 2.0)),
    )


PAIRS = make_graph({"a": 1, "b": 1, "c": 1, "e": 1}, [("a", 4, ["c"]), ("b", 4, ["e"])])


def test_channels_that_share_a_link_queue_at_it() -> None:
    # a on d0 and b on d1 end at 1; 4 bytes each to c on d2 and to e on d3, over channels of their
    # own, which share the way out: [1, 5) for c, the lower consumer, [5, 9) for e. What enters
    # takes 1 s to pass: ways in [2, 4) and [6, 8), each done no earlier than the way out, 6 and 10.
    to = [Channel(f"to-{d}", ("d0", "d1"), (d,), path=("out", "in")) for d in ("d2", "d3")]
    schedule = simulate(make_problem(PAIRS, two_hosts(*to)), [0, 1, 2, 3])
    assert carried(schedule) == [(0, [2], 1, 1, 6, 6), (1, [3], 1, 5, 10, 10)]
    assert times(schedule) == [(0, 1), (0, 1), (6, 7), (10, 11)]
    # A second way out: nobody waits but at the way in, [2, 4) and [4, 6), and there for nothing.
    apart = two_hosts(to[0], Channel("to-d3", ("d0", "d1"), ("d3",), path=("more", "in")))
    schedule = simulate(make_problem(PAIRS, apart), [0, 1, 2, 3])
    assert times(schedule) == [(0, 1), (0, 1), (6, 7), (6, 7)]


@pytest.mark.parametrize(("size", "seconds"), [(3, 0), (4, 5), (9, 5), (10, 2 + 10 * 3)])
def test_an_end_costs_what_the_last_piece_of_its_size_says(size: int, seconds: float) -> None:
    # a [0, 1) on d0; sending keeps d0 for `seconds` before c [1 + seconds, 2 + seconds) runs there,
    # though c has waited since 0. The bytes leave beside that, and b on d1 has them when both ends.
    costs = (EndCost(4, 5), EndCost(10, 2, 3))
    graph = make_graph({"a": 1, "b": 1, "c": 1}, [("a", size, ["b"])])
    there = Channel("there", ("d0",), ("d1",), 1.0, send=costs)
    devices = make_cluster(2).devices
    cluster = Cluster("ends", devices, (there, Channel("back", ("d1",), ("d0",), 1.0)))
    schedule = simulate(make_problem(graph, cluster), [0, 1, 0])
    arrival = 1 + max(size, seconds)
    assert times(schedule) == [(0, 1), (arrival, arrival + 1), (1 + seconds, 2 + seconds)]


def receiving(latency: float, *costs: EndCost, overhead: float = 0) -> Cluster:
    """d0 and d1 send to d2, with a latency from d0; d2 has costs, and rests after its ops."""
    devices = (*make_cluster(2).devices, Device("d2", "k", 100, overhead))
    return Cluster(
        "receiving",
        devices,
        (
            Channel("from-d0", ("d0",), ("d2",), 1.0, latency, receive=costs),
            Channel("from-d1", ("d1",), ("d2",), 1.0, receive=costs),
            Channel("rest", ("d0", "d1", "d2"), ("d0", "d1"), 1.0),
        ),
    )


def test_what_is_due_at_one_instant_is_received_in_the_order_of_the_requests() -> None:
    # a [0, 2) on d1 sends 1 byte, b [0, 1) on d0 sends 3, which are 1 s away: d2 could receive both
    # at 2, and begins with b's, requested at 1: [2, 5), a's [5, 6). It is free at 6; e, which reads
    # b's, waits since 5, c, which reads a's, since 6.
    costs = EndCost(0, 1), EndCost(2, 3)
    graph = make_graph({"a": 2, "b": 1, "c": 1, "e": 1}, [("a", 1, ["c"]), ("b", 3, ["e"])])
    schedule = simulate(make_problem(graph, receiving(1, *costs)), [1, 0, 2, 2])
    assert carried(schedule) == [(1, [2], 1, 1, 5, 5), (0, [2], 2, 2, 6, 6)]
    assert times(schedule) == [(0, 2), (0, 1), (7, 8), (6, 7)]


@pytest.mark.parametrize(
    ("sent", "overhead", "first", "second"),
    [(1, 0, (0, 7), 7), (1, 3, (0, 7), 10), (2, 3, (0, 2), 10), (2, 0, (0, 2), 7)],
)
def test_a_device_receives_beside_its_op_and_its_rest(
    sent: float, overhead: float, first: tuple[float, float], second: float
) -> None:
    # a [0, sent) on d0 sends 1 byte; d2 takes 5 s to receive it, from then on. It does so beside b,
    # which would be [0, 2), or beside the rest after b. c, ready at 0 as well, comes after that.
    graph = make_graph({"a": sent, "b": 2, "c": 1, "e": 1}, [("a", 1, ["e"])])
    cluster = receiving(0, EndCost(0, 5), overhead=overhead)
    schedule = simulate(make_problem(graph, cluster), [0, 2, 2, 2])
    assert times(schedule)[1:3] == [first, (second, second + 1)]
    assert schedule.transfers.arrival.tolist() == [sent + 5]


def test_p2_8xlarge_has_the_constants_of_placetos_simulator() -> None:
    # Placeto's released simulator: 7,600 bytes/us, 25 us a transfer, 5.7 us an op, in us here.
    # a [0, 100) on gpu0. Its 760,000 bytes take 100 us to all others at once: [100, 200); the
    # channel is free again at 225. b [105.7, 155.7) on gpu0; its 7,600,000 bytes to gpu2 wait for
    # the channel: [225, 1225). c [200, 230) on gpu1 and d [200, 210) on gpu2, where the next op
    # may start from 215.7; e, on gpu2, starts when b's tensor is there: [1225, 1235).
    us = 1e-6
    graph = make_graph(
        {"a": 100 * us, "b": 50 * us, "c": 30 * us, "d": 10 * us, "e": 10 * us},
        [("a", 760_000, ["b", "c", "d"]), ("b", 7_600_000, ["e"])],
    )
    graph = placeto.ComputationGraph(
        "p2", graph.op_names, graph.op_types, {"k80": graph.op_seconds["k"]},
        graph.tensor_producer, graph.tensor_bytes, graph.edge_tensor, graph.edge_consumer,
    )  # fmt: skip
    problem = make_problem(graph, placeto.load_cluster("p2.8xlarge"))
    assert problem.num_devices == 8
    schedule = simulate(problem, [0, 0, 1, 2, 2])
    start = [0, 105.7, 200, 200, 1225]
    assert (schedule.start / us).tolist() == pytest.approx(start, rel=1e-12)
    assert schedule.step_time / us == pytest.approx(1235, rel=1e-12)
    assert len(schedule.transfers) == 2
    # One device: 5.7 us between ops.
    schedule = simulate(problem, [3, 3, 3, 3, 3])
    start = [0, 105.7, 161.4, 197.1, 212.8]
    assert (schedule.start / us).tolist() == pytest.approx(start, rel=1e-12)


@pytest.mark.parametrize("order", ["fifo", "critical-path"])
def test_one_device_alone_is_faster_than_beside_another(order) -> None:
    # Alone ops take half: a [0, 1), the launch overhead until 2, b [2, 4). On two devices a [0, 2),
    # its byte travels [2, 3), b [3, 7): a device that others wait for is not alone.
    graph = make_graph({"a": 2, "b": 4}, [("a", 1, ["b"])])
    graph = replace(graph, meta={"costs": {"kinds": {"k": {"alone": 0.5}}}})
    cluster = make_cluster(2, launch_overhead=1.0)
    problem = PlacementProblem(graph, cluster, "none", order=order)
    assert times(simulate(problem, [1, 1])) == [(0, 1), (2, 4)]
    assert times(simulate(problem, [0, 1])) == [(0, 2), (3, 7)]
    assert lower_bound(problem) == critical_path(problem) == 4
    # A launch after each, on one device; on two, b and the launch after it.
    assert lower_bound(replace(problem, objective="throughput")) == 5
    assert place(problem, "exact").devices.tolist() in ([0, 0], [1, 1])


@pytest.mark.parametrize("said", [None, "0.5", 0, -1, float("inf"), float("nan")])
def test_what_is_no_factor_is_none(said) -> None:
    graph = replace(make_graph({"a": 2}), meta={"costs": {"kinds": {"k": {"alone": said}}}})
    assert make_problem(graph, make_cluster(2)).alone.tolist() == [1, 1]
