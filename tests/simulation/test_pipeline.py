"""Blocks, bubble and microbatches alive: by hand, and op by op on random steps."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import PlacementProblem, simulate
from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.simulation import alive_microbatches, bubble_share, pipeline_blocks
from tests.builders import make_cluster, make_graph, make_pipelined, make_problem
from tests.strategies import clusters_of_links, examples, placed


def by_layer(problem):
    """The second layer on the second device."""
    devices = np.zeros(problem.num_groups, dtype=np.int64)
    devices[problem.op_group] = [name.endswith("1") for name in problem.graph.op_names]
    return devices


def rows(blocks):
    """(microbatch, phase, ops, start, finish) of the blocks of each device."""
    found = [[], []]
    for device, *row in zip(*(column.tolist() for column in vars(blocks).values()), strict=True):
        found[device].append(tuple(row))
    return found


@pytest.mark.parametrize(
    ("order", "bubble", "alive"),
    [
        # 12 s of work a device, in 18 s; all have gone forward before the first goes back.
        ("gpipe", 1 - 24 / 36, [4, 4]),
        # In 15 s. The second device is back with each before it begins the next; the first has
        # begun all four before anything comes back, at 4 s; or two, as many as there are devices.
        ("eager-1f1b", 1 - 24 / 30, [4, 1]),
        ("1f1b", 1 - 24 / 30, [2, 1]),
        # In 17 s. The second device runs f 0, f 1, b 0 until 6 s, f 2, then f 3 while b 1 waits.
        ("fifo", 1 - 24 / 34, [4, 3]),
    ],
)
def test_orders_by_hand(order, bubble, alive):
    problem = replace(make_pipelined(), order=order)
    schedule = simulate(problem, by_layer(problem))
    assert bubble_share(problem, schedule) == pytest.approx(bubble)
    assert alive_microbatches(problem, schedule).tolist() == alive


def test_blocks_by_hand():
    problem = replace(make_pipelined(3), order="eager-1f1b")
    first, second = rows(pipeline_blocks(problem, simulate(problem, by_layer(problem))))
    assert first == [
        (0, FORWARD, 1, 0, 1), (1, FORWARD, 1, 1, 2), (2, FORWARD, 1, 2, 3),
        (0, BACKWARD, 1, 4, 6), (1, BACKWARD, 1, 7, 9), (2, BACKWARD, 1, 10, 12),
    ]  # fmt: skip
    assert second == [
        (0, FORWARD, 1, 1, 3), (0, BACKWARD, 1, 3, 4), (1, FORWARD, 1, 4, 6),
        (1, BACKWARD, 1, 6, 7), (2, FORWARD, 1, 7, 9), (2, BACKWARD, 1, 9, 10),
    ]  # fmt: skip


def test_a_block_is_of_one_microbatch_and_holds_short_pauses_and_what_is_of_all():
    # One device runs a, the read, b (when the other device's op has come), c, and the update;
    # `nothing` takes no time. Microbatch 1 has no backward: it is alive as long as it runs.
    names = {"a": 1.0, "read": 1.0, "far": 4.0, "b": 1.0, "nothing": 0.0, "c": 2.0, "update": 1.0}
    tensors = [("a", 0, ["read", "far"]), ("far", 0, ["b"]), ("read", 0, ["b"]),
               ("b", 0, ["nothing"]), ("nothing", 0, ["c"]), ("c", 0, ["update"])]  # fmt: skip
    columns = {
        "microbatch": [0, -1, 0, 0, 1, 1, -1],
        "phase": [FORWARD, FORWARD, FORWARD, FORWARD, BACKWARD, FORWARD, UPDATE],
    }
    graph = replace(make_graph(names, tensors), **columns)
    problem = make_problem(graph, make_cluster(3))
    schedule = simulate(problem, [0, 0, 1, 0, 0, 0, 0])
    first, second = rows(pipeline_blocks(problem, schedule))
    assert first == [(0, FORWARD, 2, 0, 6), (1, FORWARD, 1, 6, 8), (-1, UPDATE, 1, 8, 9)]
    assert second == [(0, FORWARD, 1, 1, 5)]
    # Between a and b there are 4 s, of which the read takes one.
    assert rows(pipeline_blocks(problem, schedule, 4.0))[0] == first
    apart = rows(pipeline_blocks(problem, schedule, 3.9))[0]
    assert apart[:2] == [(0, FORWARD, 1, 0, 1), (0, FORWARD, 1, 5, 6)]
    assert alive_microbatches(problem, schedule).tolist() == [1, 1, 0]
    # Of two devices in 9 s, the first is free from 2 to 5, the second but for 4 s; the third has
    # nothing to do.
    assert bubble_share(problem, schedule) == pytest.approx(8 / 18)


def test_launch_overhead_is_no_bubble():
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0}, [("a", 0, ["b"]), ("a", 0, ["c"])])
    problem = make_problem(graph, make_cluster(2, launch_overhead=0.5))
    # The first device runs from 0 to 2.5 but for nothing, the second from 1 to 2 and is held
    # until 2.5.
    assert bubble_share(problem, simulate(problem, [0, 0, 1])) == pytest.approx(1 / 5)


@examples(60)
@given(example=placed(max_ops=20, made=clusters_of_links, ranked=True), data=st.data())
def test_figures_are_those_of_the_definitions(example, data):
    problem, devices = example
    num_ops = problem.graph.num_ops

    def drawn(low, high):
        number = st.integers(low, high)
        return data.draw(st.lists(number, min_size=num_ops, max_size=num_ops))

    graph = replace(problem.graph, microbatch=drawn(-1, 3), phase=drawn(FORWARD, UPDATE))
    order = "fifo" if problem.ranks is None else problem.ranks
    problem = PlacementProblem(graph, problem.cluster, problem.op_group, order=order)
    schedule = simulate(problem, devices)
    assume(0 < schedule.step_time < np.inf)
    alive, bubble = alive_microbatches(problem, schedule), bubble_share(problem, schedule)
    used, busy, found = 0, 0.0, []
    for device in range(problem.num_devices):
        own = [op for op in np.argsort(schedule.start, kind="stable")
               if schedule.devices[problem.op_group[op]] == device
               and schedule.finish[op] > schedule.start[op]]  # fmt: skip
        assert alive[device] == most_alive(graph, schedule, own)
        if own:
            used += 1
            busy += busy_seconds(problem, schedule, device, own)
        before = None
        for op in own:
            key = (device, graph.microbatch[op], graph.phase[op])
            if graph.microbatch[op] < 0 and graph.phase[op] != UPDATE:
                continue
            if key != before:
                found.append([*key, 0, schedule.start[op], None])
            found[-1][3:] = [found[-1][3] + 1, found[-1][4], schedule.finish[op]]
            before = key
    expected = 1 - busy / (used * schedule.step_time) if used else 0
    assert bubble == pytest.approx(expected, abs=1e-9)
    columns = vars(pipeline_blocks(problem, schedule)).values()
    assert [list(row) for row in zip(*columns, strict=True)] == found


def most_alive(graph, schedule, own):
    """At the start of some op of the device, how many microbatches have begun and not ended."""
    lives = []
    for number in range(graph.num_microbatches):
        forward, backward = (
            [op for op in own if graph.microbatch[op] == number and graph.phase[op] == phase]
            for phase in (FORWARD, BACKWARD)
        )
        if forward or backward:
            begin = min(schedule.start[op] for op in forward or backward)
            lives.append((begin, max(schedule.finish[op] for op in backward or forward)))
    instants = [schedule.start[op] for op in own]
    return max((sum(a <= now < b for a, b in lives) for now in instants), default=0)


def busy_seconds(problem, schedule, device, own):
    """Seconds in which an op runs or has just run, or a transfer is sent or received."""
    overhead, step = problem.cluster.devices[device].launch_overhead_seconds, schedule.step_time
    parts = schedule.transfers.parts
    spans = [(schedule.start[op], min(schedule.finish[op] + overhead, step)) for op in own]
    spans += [(parts.start[part], parts.finish[part]) for part in range(len(parts))
              if parts.device[part] == device]  # fmt: skip
    instants = sorted({instant for span in spans for instant in span})
    return sum(
        later - now for now, later in pairwise(instants) if any(a <= now < b for a, b in spans)
    )
