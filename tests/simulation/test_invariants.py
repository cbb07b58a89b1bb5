"""What holds for every schedule."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import PlacementProblem, simulate
from placeto.simulation import simulate_many
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import placed, problems


def critical_path(problem: PlacementProblem, seconds: np.ndarray) -> float:
    graph = problem.graph
    finish = np.zeros(graph.num_ops)
    producers = {op: [] for op in range(graph.num_ops)}
    for tensor, consumer in zip(graph.edge_tensor, graph.edge_consumer, strict=True):
        producers[consumer].append(graph.tensor_producer[tensor])
    for op in graph.topological_order:
        finish[op] = max([finish[p] for p in producers[op]], default=0) + seconds[op]
    return float(finish.max())


@given(placed())
def test_bounds(example: tuple[PlacementProblem, list[int]]) -> None:
    problem, devices = example
    schedule = simulate(problem, devices)
    op_device = np.asarray(devices)[problem.op_group]
    seconds = problem.seconds_of(np.asarray(devices))
    assert schedule.step_time >= critical_path(problem, seconds) * (1 - 1e-12)
    for device in range(problem.num_devices):
        assert schedule.step_time >= seconds[op_device == device].sum() * (1 - 1e-12)
    assert schedule.step_time == schedule.finish.max()


@given(placed())
def test_nothing_overlaps_or_starts_too_early(example: tuple[PlacementProblem, list[int]]) -> None:
    problem, devices = example
    schedule = simulate(problem, devices)
    assume(np.isfinite(schedule.step_time))
    graph, arrays, transfers = problem.graph, problem.arrays, schedule.transfers
    op_device = np.asarray(devices)[problem.op_group]
    for device in range(problem.num_devices):
        ops = np.flatnonzero(op_device == device)
        ops = ops[np.lexsort((schedule.finish[ops], schedule.start[ops]))]
        held = np.where(problem.op_seconds[ops, device] > 0, arrays.launch_overhead[device], 0)
        free = schedule.finish[ops] + held
        assert (schedule.start[ops][1:] >= free[:-1]).all()
    for channel in range(len(problem.cluster.channels)):
        used = np.flatnonzero(transfers.channel == channel)
        used = used[np.lexsort((transfers.sent[used], transfers.start[used]))]
        free = transfers.sent[used] + arrays.overhead[channel]
        assert (transfers.start[used][1:] >= free[:-1]).all()
        # First come, first served.
        assert (np.diff(transfers.request[used]) >= 0).all()
    assert (transfers.start >= transfers.request).all()
    arrival = {
        (tensor, device): transfers.arrival[index]
        for index, tensor in enumerate(transfers.tensor.tolist())
        for device in np.flatnonzero(transfers.destinations[index]).tolist()
    }
    for tensor, consumer in zip(graph.edge_tensor, graph.edge_consumer, strict=True):
        producer = graph.tensor_producer[tensor]
        local = op_device[producer] == op_device[consumer]
        there = schedule.finish[producer] if local else arrival[tensor, op_device[consumer]]
        assert schedule.start[consumer] >= there


@given(problems(max_ops=30))
def test_one_device_takes_the_sum(problem: PlacementProblem) -> None:
    schedule = simulate(problem, [0] * problem.num_groups)
    seconds = problem.op_seconds[:, 0] * problem.alone[0]
    overhead = problem.arrays.launch_overhead[0]
    # The device is never idle; the last op of non-zero duration is held by nobody after it, but
    # ops of no duration may follow, after its overhead.
    last_work = schedule.finish[seconds > 0].max(initial=0)
    gaps = max((seconds > 0).sum() - 1, 0) * overhead
    assert last_work == pytest.approx(seconds.sum() + gaps, rel=1e-9)
    assert schedule.step_time in (last_work, last_work + overhead)
    assert len(schedule.transfers) == 0


@given(st.data())
def test_the_same_schedule_again(data: st.DataObject) -> None:
    problem, devices = data.draw(placed(max_ops=20))
    assert simulate(problem, devices) == simulate(problem, np.array(devices, dtype=np.int8))


def test_schedules_differ_where_one_start_does() -> None:
    problem = make_problem(make_graph({"a": 1, "b": 1}), make_cluster(2))
    first, second = simulate(problem, [0, 1]), simulate(problem, [0, 1])
    assert first == second
    second.start[1] = 0.5
    assert first != second
    assert first != simulate(problem, [1, 0])
    assert first != "a schedule"


def test_empty_batch() -> None:
    problem = make_problem(make_graph({"a": 1, "b": 1}), make_cluster(2))
    outcomes = simulate_many(problem, np.zeros((0, 2), dtype=int))
    assert outcomes.step_time.shape == (0,)
    assert outcomes.peak_memory.shape == (0, 2)
