from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given

from placeto import simulate
from placeto.cluster import EndCost
from placeto.simulation import device_spans
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import placed

# a (1 s) is read by c on its own device and by b on the other, whose output d reads.
GRAPH = make_graph(
    {"a": 1.0, "b": 10.0, "c": 9.0, "d": 1.0}, [("a", 1, ["b", "c"]), ("b", 1, ["d"])]
)
DEVICES = [0, 1, 0, 0]


def seconds(problem, devices):
    return [spans.seconds() for spans in device_spans(problem, simulate(problem, devices))]


def only(**some):
    """These seconds, and none of the other kinds."""
    return dict.fromkeys(["compute", "exchange", "launch", "transfer", "wait", "idle"], 0) | some


def test_a_step_by_hand():
    # d0: a 0–1, c 1–10, nothing until b is made at 12, its output on the way until 13, d 13–14.
    # d1: nothing until a is made at 1, its output on the way until 2, b 2–12, then nothing.
    first, second = seconds(make_problem(GRAPH, make_cluster(2)), DEVICES)
    assert first == only(compute=11, transfer=1, wait=2)
    assert second == only(compute=10, transfer=1, wait=1, idle=2)


def test_launch_overhead_holds_the_device_until_the_step_ends():
    # d0: a 0–1, held until 1.5, c 1.5–10.5, held until 11, waits until 12, d 13–14.
    # d1: b 2–12, held until 12.5.
    problem = make_problem(GRAPH, make_cluster(2, launch_overhead=0.5))
    first, second = seconds(problem, DEVICES)
    assert first == only(compute=11, launch=1, transfer=1, wait=1)
    assert second == only(compute=10, launch=0.5, transfer=1, wait=1, idle=1.5)


def test_what_queues_for_its_channel_is_on_its_way():
    # Both of a's outputs go to d1 over one channel: 1–3 and 3–4; only c reads the second.
    graph = make_graph({"a": 1.0, "c": 1.0}, [("a", 2, ["c"]), ("a", 1, ["c"])])
    _, second = seconds(make_problem(graph, make_cluster(2)), [0, 1])
    assert second == only(compute=1, transfer=3, wait=1)


def test_a_device_without_work_is_idle():
    problem = make_problem(make_graph({"a": 2.0}), make_cluster(2))
    assert seconds(problem, [0])[1] == only(idle=2)


def test_what_sends_or_receives_does_not_compute():
    # Sending takes 0.5 s, receiving 2. d0: a 0–1, sends 1–1.5, c until 10.5, nothing until b's
    # output is received 13–15, d 15–16. d1: receives 1–3, b 3–13, sends 13–13.5.
    cluster = make_cluster(2)
    ends = {"send": (EndCost(0, 0.5, 0.0),), "receive": (EndCost(0, 2.0, 0.0),)}
    channels = tuple(replace(channel, **ends) for channel in cluster.channels)
    first, second = seconds(make_problem(GRAPH, replace(cluster, channels=channels)), DEVICES)
    assert first == only(compute=11, exchange=2.5, wait=2.5)
    assert second == only(compute=10, exchange=2.5, wait=1, idle=2.5)


@given(example=placed(max_ops=30))
def test_kinds_add_up_to_the_step_and_are_those_of_the_definition(example):
    problem, devices = example
    schedule = simulate(problem, devices)
    assume(np.isfinite(schedule.step_time) and schedule.step_time > 0)
    for device, spans in enumerate(device_spans(problem, schedule)):
        assert sum(spans.seconds().values()) == pytest.approx(schedule.step_time)
        every = np.concatenate(list(vars(spans).values()))
        every = every[np.argsort(every[:, 0])]
        np.testing.assert_allclose(every[1:, 0], every[:-1, 1], atol=1e-9 * schedule.step_time)
        for kind, own in vars(spans).items():
            for begin, end in own.tolist():
                if end - begin > 1e-6 * schedule.step_time:
                    assert kind_at(problem, schedule, device, (begin + end) / 2) == kind


def kind_at(problem, schedule, device, now):
    """What a device does at an instant, op by op and transfer by transfer."""
    parts = schedule.transfers.parts
    for part in range(len(parts)):
        if parts.device[part] == device and parts.start[part] <= now < parts.finish[part]:
            return "exchange"
    overhead = problem.cluster.devices[device].launch_overhead_seconds
    later = []
    for op in range(problem.graph.num_ops):
        start, finish = schedule.start[op], schedule.finish[op]
        if schedule.devices[problem.op_group[op]] != device or start == finish:
            continue
        if start <= now < finish:
            return "compute"
        if finish <= now < finish + overhead:
            return "launch"
        if start > now:
            later.append(start)
    if not later:
        return "idle"
    transfers, close = schedule.transfers, 1e-9 * schedule.step_time
    requests = [
        transfers.request[index]
        for index in range(len(transfers))
        if transfers.destinations[index, device]
        and abs(transfers.arrival[index] - min(later)) <= close
    ]
    return "transfer" if now >= min(requests) else "wait"
