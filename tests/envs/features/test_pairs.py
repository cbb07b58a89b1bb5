"""What a policy sees of groups and devices, against `pair_reference` and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placeto import PlacementProblem, load_cluster, load_graph, simulate
from placeto.envs import generator
from placeto.envs.features.pairs import Group, Pair
from tests.builders import make_cluster, make_graph, make_problem
from tests.envs.features.observing import observed
from tests.envs.features.pair_reference import Scene, reference_group, reference_pairs, squashed
from tests.strategies import (
    GRID,
    allowed_placements,
    clusters_of_links,
    examples,
    graphs,
    groupings,
    pinned,
)


@examples(150)
@pytest.mark.parametrize("made", [{}, {"made": clusters_of_links, "ranked": True}])
@given(data=st.data())
def test_every_column_is_that_of_the_slow_reference(made, data):
    problem = data.draw(pinned(max_ops=24, **made))
    devices = data.draw(allowed_placements(problem))
    visited = data.draw(st.sets(st.integers(0, problem.num_groups - 1)))
    later = data.draw(st.booleans())
    assert_seen(problem, devices, visited, later)


def test_columns_of_a_real_graph_are_those_of_the_slow_reference():
    # Two thousand ops, of which a simulation leaves out constants and implied inputs.
    problem = PlacementProblem(load_graph("ptb_small"), load_cluster("k80x4-cpu"), 12)
    rng = np.random.default_rng(0)
    devices = [int(rng.choice(np.flatnonzero(row))) for row in problem.allowed]
    assert_seen(problem, devices, {0, 3, 7}, False)


def assert_seen(problem, devices, visited, later):
    pairs, rows = observed(problem, devices, visited, later)
    scene = Scene(problem, devices, visited)
    for group in range(problem.num_groups):
        expected = reference_pairs(scene, group)
        for device in range(problem.num_devices):
            for column in Pair:
                assert pairs[group, device, column] == pytest.approx(
                    expected[device, column], rel=1e-5, abs=1e-5
                ), (group, device, column)
        row = reference_group(scene, group, later)
        for column in Group:
            assert rows[group, column] == pytest.approx(row[column], rel=1e-5, abs=1e-5), column


def test_inputs_and_outputs_of_a_chain_by_hand():
    # On d0 a 0-2 and b 2-3; b's output leaves at 3, is there at 4.5, keeps the channel to 4.25; on
    # d1 c 4.5-5.5.
    graph = make_graph({"a": 2.0, "b": 1.0, "c": 1.0}, [("a", 1, ["b"]), ("b", 1, ["c"])])
    problem = make_problem(graph, make_cluster(2, latency=0.5, overhead=0.25))
    pairs, rows = observed(problem, [0, 0, 1], visited=[0])
    column = dict(zip(Pair, pairs[1].T.tolist(), strict=True))

    def shares(*seconds):
        return pytest.approx([squashed(value / 5.5) for value in seconds], abs=1e-6)

    assert column[Pair.HERE] == [1, 0]
    assert column[Pair.WORK] == shares(1, 1)
    assert column[Pair.SLOWDOWN] == [0, 0]
    assert column[Pair.INPUT_LATE] == shares(0, 1.5)  # a's output would be there at 3.5, not 2
    assert column[Pair.INPUTS_LATE] == shares(0, 1.5)
    assert column[Pair.RECEIVING] == shares(0, 1.25)
    assert column[Pair.INPUT_SHARE] == [1, 0]
    assert column[Pair.INPUT_SHARE_VISITED] == [1, 0]
    assert column[Pair.OUTPUT_LATE] == shares(0, -1.5)  # without a transfer at 3, not at 4.5
    assert column[Pair.OUTPUTS_LATE] == shares(0, 0)
    assert column[Pair.SENDING] == shares(1.25, 0)
    assert column[Pair.OUTPUT_SHARE] == [0, 1]
    assert column[Pair.OUTPUT_SHARE_VISITED] == [0, 0]
    assert column[Pair.BUSY] == pytest.approx([2 / 5.5, 1 / 5.5])
    assert column[Pair.CHANNEL_OUT] == pytest.approx([1.25 / 5.5, 0])
    assert column[Pair.CHANNEL_IN] == pytest.approx([0, 1.25 / 5.5])
    assert column[Pair.VISITED_WORK] == pytest.approx([1 / 5.5, -1 / 5.5])
    row = dict(zip(Group, rows[1].tolist(), strict=True))
    assert row[Group.PATH_TO] == pytest.approx(2 / 4)
    assert row[Group.PATH_FROM] == pytest.approx(2 / 4)
    assert row[Group.START] == pytest.approx(2 / 5.5)
    assert row[Group.DEVICES] == pytest.approx(1 / 3)
    assert row[Group.BUSY] == pytest.approx(3 / 5.5)
    assert row[Group.INPUTS] == row[Group.OUTPUTS] == pytest.approx(math.log(2) / math.log(1001))
    assert row[Group.VISITED] == pytest.approx(1 / 3)
    assert row[Group.WORK_LEFT] == row[Group.WORK_VISITED] == pytest.approx(2 / 5.5)


def test_company_of_an_op_by_hand():
    # On d0 a 0-2 and b 2-4, on d1 c 0-1: 2% of the step are 0.08 s.
    problem = make_problem(make_graph({"a": 2.0, "b": 2.0, "c": 1.0}), make_cluster(2))
    pairs, _ = observed(problem, [0, 0, 1])
    meanwhile, around = pairs[:, :, Pair.BUSY_MEANWHILE], pairs[:, :, Pair.BUSY_AROUND]
    assert meanwhile == pytest.approx(np.array([[0, 1 / 2], [0, 0], [1, 0]]))
    assert around == pytest.approx(
        np.array([[0.08 / 2.16, 1 / 2.16], [0.08 / 2.16, 0], [1.08 / 1.16, 0]])
    )


def test_a_tensor_that_goes_there_anyway_costs_nothing():
    # d1 reads a's output for c: b's copy is the same one.
    graph = make_graph({"a": 1.0, "b": 1.0, "c": 1.0}, [("a", 4, ["b", "c"])])
    problem = make_problem(graph, make_cluster(3))
    pairs, _ = observed(problem, [0, 0, 1])
    a, b = 0, 1
    assert pairs[b, :, Pair.RECEIVING] == pytest.approx([0, 0, squashed(4 / 6)], abs=1e-6)
    assert pairs[b, :, Pair.INPUT_SHARE].tolist() == [1, 1, 0]
    # From d2, a would send to d0 and to d1; from d0 and d1, only to the other.
    assert pairs[a, :, Pair.SENDING] == pytest.approx(
        [squashed(4 / 6), squashed(4 / 6), squashed(8 / 6)], abs=1e-6
    )
    assert pairs[a, :, Pair.OUTPUT_SHARE].tolist() == [0.5, 0.5, 0]


def test_memory_counts_from_four_fifths_with_the_group_there():
    graph = make_graph({"a": 1.0, "b": 1.0}, param_bytes={"a": 90, "b": 10})
    pairs, _ = observed(make_problem(graph, make_cluster(2, memory=100)), [0, 1])
    assert pairs[:, :, Pair.MEMORY] == pytest.approx(np.array([[0.1, 0.2], [0.2, 0]]))


def test_slowdown_is_to_the_fastest_device():
    pairs, rows = observed(generator.unequal(), [0, 0, 0, 0])  # ops of 10 and of 5 ms
    assert pairs[:, :, Pair.SLOWDOWN] == pytest.approx(np.array([[math.log(2), 0]] * 4))
    assert rows[:, Group.WORK] == pytest.approx(squashed(5 / 40))


@given(st.data())
def test_swapping_like_devices_swaps_their_rows(data):
    graph = data.draw(graphs(GRID, 24))
    count, shared = data.draw(st.integers(2, 4)), data.draw(st.booleans())
    cluster = make_cluster(count, latency=0.5, overhead=0.25, launch_overhead=0.125, shared=shared)
    cluster = replace(
        cluster, devices=tuple(replace(device, kind="fast") for device in cluster.devices)
    )
    problem = PlacementProblem(graph, cluster, data.draw(groupings(graph)))
    devices = np.array(data.draw(allowed_placements(problem)))
    swap = np.array(data.draw(st.permutations(range(count))))
    # Ops of no duration run at one instant, in the order of their devices.
    assume(np.array_equal(simulate(problem, devices).start, simulate(problem, swap[devices]).start))
    pairs, rows = observed(problem, devices, visited=[0])
    swapped, same = observed(problem, swap[devices], visited=[0])
    np.testing.assert_allclose(swapped[:, swap], pairs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(same, rows, rtol=1e-5, atol=1e-6)
