"""The kernel against the independent implementation in tests/reference.py: equal, not close."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placeto
from placeto import ComputationGraph, PlacementProblem, Schedule, simulate
from placeto.simulation import simulate_many
from tests.reference import ReferenceTransfer, reference_schedule
from tests.strategies import (
    clusters,
    clusters_of_links,
    examples,
    large_placed,
    placed,
    placements,
    problems,
)


def parts_of(
    problem: PlacementProblem, schedule: Schedule, transfer: int
) -> tuple[tuple[str, int, float, float], ...]:
    """Of one transfer, what the reference says of its parts."""
    transfers, parts, found = schedule.transfers, schedule.transfers.parts, []
    for index in np.flatnonzero(parts.transfer == transfer).tolist():
        resource = ("link", int(transfers.channel[transfer]))
        if parts.device[index] >= 0:
            resource = ("device", int(parts.device[index]))
        elif parts.link[index] >= 0:
            resource = ("link", len(problem.cluster.channels) + int(parts.link[index]))
        found.append((*resource, float(parts.start[index]), float(parts.finish[index])))
    return tuple(found)


def assert_equals_reference(problem: PlacementProblem, devices: object) -> Schedule:
    schedule = simulate(problem, devices)
    device_of = np.asarray(devices)[problem.op_group].tolist()
    ranks = None if problem.ranks is None else problem.ranks.tolist()
    held_back = problem.held_back.tolist()
    expected = reference_schedule(problem.graph, problem.cluster, device_of, ranks, held_back)
    assert schedule.start.tolist() == expected.start
    assert schedule.finish.tolist() == expected.finish
    assert schedule.step_time == expected.step_time
    assert schedule.peak_memory.tolist() == expected.peak_memory
    assert schedule.feasible == expected.feasible
    found = schedule.transfers
    transfers = [
        ReferenceTransfer(
            int(found.tensor[index]),
            int(found.channel[index]),
            frozenset(np.flatnonzero(found.destinations[index]).tolist()),
            *(float(getattr(found, t)[index]) for t in ("request", "start", "sent", "arrival")),
            parts_of(problem, schedule, index),
        )
        for index in range(len(found))
    ]
    assert len(set(transfers)) == len(transfers)
    assert set(transfers) == expected.transfers
    return schedule


@examples(200)
@given(placed())
def test_random_problems(example: tuple[PlacementProblem, list[int]]) -> None:
    assert_equals_reference(*example)


@examples(300)
@given(large_placed())
def test_random_problems_of_up_to_200_ops(example: tuple[PlacementProblem, list[int]]) -> None:
    assert_equals_reference(*example)


@examples(300)
@given(placed(made=clusters_of_links, ranked=True))
def test_transfers_of_several_parts_and_ops_with_ranks(
    example: tuple[PlacementProblem, list[int]],
) -> None:
    assert_equals_reference(*example)


@examples(200)
@given(st.data())
def test_equal_ranks_are_none(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from([clusters, clusters_of_links]))
    problem = data.draw(problems(made=made))
    ranks = np.full(problem.graph.num_ops, data.draw(st.sampled_from([-1.5, 0.0, 3.0])))
    ranked = PlacementProblem(problem.graph, problem.cluster, problem.op_group, order=ranks)
    devices = data.draw(placements(problem))
    assert simulate(ranked, devices) == simulate(problem, devices)


@given(st.data())
def test_batch_equals_one_by_one(data: st.DataObject) -> None:
    problem = data.draw(problems(max_ops=20))
    many = np.array(data.draw(st.lists(placements(problem), min_size=1, max_size=5)))
    outcomes = simulate_many(problem, np.asfortranarray(many))
    assert np.array_equal(placeto.step_times(problem, many), outcomes.step_time)
    for index, devices in enumerate(many):
        schedule = simulate(problem, devices)
        assert outcomes.step_time[index] == schedule.step_time
        assert outcomes.peak_memory[index].tolist() == schedule.peak_memory.tolist()
        assert outcomes.feasible[index] == schedule.feasible
        for group in range(problem.num_groups):
            ops = np.flatnonzero(problem.op_group == group)
            works = ops[problem.op_seconds[ops, devices[group]] > 0]
            assert outcomes.group_start[index, group] == schedule.start[works].min(
                initial=np.inf if len(works) else 0
            )


def large_graph(num_ops: int, seed: int) -> ComputationGraph:
    rng = np.random.default_rng(seed)
    consumer = np.repeat(np.arange(1, num_ops), 2)
    producer = consumer - rng.integers(1, 40, len(consumer))
    keep = producer >= 0
    producer, consumer = producer[keep] * 2 + rng.integers(0, 2, keep.sum()), consumer[keep]
    return ComputationGraph(
        name="large",
        op_names=[f"op{op}" for op in range(num_ops)],
        op_types=["Op"] * num_ops,
        op_seconds={"k80": rng.choice([0.0, 1e-5, 1e-4, 3e-4], num_ops)},
        tensor_producer=np.repeat(np.arange(num_ops), 2),
        tensor_bytes=rng.choice([0, 4096, 10**6], 2 * num_ops),
        edge_tensor=producer,
        edge_consumer=consumer,
        param_bytes=rng.integers(0, 10**6, num_ops),
        temp_bytes=rng.integers(0, 10**6, num_ops),
    )


@pytest.mark.parametrize("cluster", ["k80x4", "p2.8xlarge"])
def test_two_thousand_ops(cluster: str) -> None:
    problem = PlacementProblem(large_graph(2000, seed=1), placeto.load_cluster(cluster), "none")
    rng = np.random.default_rng(2)
    assert_equals_reference(problem, rng.integers(0, problem.num_devices, 2000))
    blocks = np.arange(2000) * problem.num_devices // 2000
    assert_equals_reference(problem, blocks)


@pytest.mark.parametrize("cluster", ["k80x4", "p2.8xlarge", "a100x2-v100x2-cpu", "v100x8-nvlink"])
def test_inception_v3(cluster: str) -> None:
    graph = placeto.load_graph("inception_v3")
    problem = PlacementProblem(graph, placeto.load_cluster(cluster), "none")
    groups, devices = problem.num_groups, problem.num_devices
    assert assert_equals_reference(problem, np.zeros(groups, dtype=int)).transfers.tensor.size == 0
    blocks = np.argsort(problem.group_order) * devices // groups
    assert len(assert_equals_reference(problem, blocks).transfers) > 0
    rng = np.random.default_rng(0)
    assert_equals_reference(problem, rng.integers(0, devices, groups))
