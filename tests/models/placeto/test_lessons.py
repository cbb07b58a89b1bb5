"""Placements that a policy imitates, made comparable, and made harder."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeto import PlacementProblem
from placeto.envs import generator
from placeto.models.placeto.agent import MOST_BLOCKS, disturbed, relabelled
from placeto.simulation import step_times
from tests.builders import make_cluster, make_graph, make_problem
from tests.strategies import allowed_placements, pinned

FREE = make_problem(make_graph({f"op{number}": 1.0 for number in range(40)}), make_cluster(3))


def same_kind(problem, one, other):
    nameless = [replace(problem.cluster.devices[device], name="") for device in (one, other)]
    return nameless[0] == nameless[1]


@given(st.data())
def test_relabelled_placements_keep_their_step_time_and_come_up_in_order(data):
    problem = data.draw(pinned(max_ops=20))
    devices = np.array(data.draw(allowed_placements(problem)))
    first = data.draw(st.integers(0, problem.num_devices - 1))
    before = devices.copy()
    result = relabelled(problem, devices, first)
    assert (devices == before).all()
    assert problem.allowed[np.arange(problem.num_groups), result].all()
    for group, device in problem.pins.items():
        assert result[group] == device
    old, new = step_times(problem, np.stack([devices, result]))
    assert new == pytest.approx(old, rel=1e-9)
    # One name a device, and that of a device like it.
    names = dict(zip(devices.tolist(), result.tolist(), strict=True))
    assert [names[device] for device in devices.tolist()] == result.tolist()
    assert len(set(names.values())) == len(names)
    for device, name in names.items():
        assert same_kind(problem, device, name)
    if (result != devices).any():
        assert relabelled(problem, result, first).tolist() == result.tolist()
        come_up = list(dict.fromkeys(result[problem.group_order].tolist()))
        for device in come_up:
            alike = [other for other in come_up if same_kind(problem, device, other)]
            ranks = [(other != first, other) for other in alike]
            assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("devices", "first", "expected"),
    [
        ([2, 2, 1, 0], 0, [0, 0, 1, 2]),
        ([2, 2, 1, 0], 1, [1, 1, 0, 2]),
        ([1, 0, 1, 2], 2, [2, 0, 2, 1]),
        ([0, 0, 0, 0], 2, [2, 2, 2, 2]),
    ],
)
def test_like_devices_are_named_as_they_come_up(devices, first, expected):
    problem = make_problem(make_graph(dict.fromkeys("abcd", 1.0)), make_cluster(3))
    assert relabelled(problem, np.array(devices), first).tolist() == expected


def test_unequal_devices_are_not_swapped():
    devices = np.array([1, 0, 1, 1])
    for first in (0, 1):
        assert relabelled(generator.unequal(), devices, first).tolist() == [1, 0, 1, 1]


def test_pinned_groups_stay():
    problem = make_problem(make_graph(dict.fromkeys("abcd", 1.0)), make_cluster(3))
    problem = PlacementProblem(problem.graph, problem.cluster, "none", pins={2: 2})
    assert relabelled(problem, np.array([1, 1, 2, 2]), 0).tolist() == [1, 1, 2, 2]


def test_like_devices_are_not_swapped_where_their_channels_differ():
    graph = make_graph({"a": 1.0, "b": 1.0}, [("a", 4, ["b"])])
    cluster = make_cluster(3)
    fast = replace(cluster.channels[1], bandwidth=100.0)
    cluster = replace(cluster, channels=(cluster.channels[0], fast, cluster.channels[2]))
    assert relabelled(make_problem(graph, cluster), np.array([1, 0]), 0).tolist() == [1, 0]


@given(st.data(), st.integers(0, 2**32 - 1))
def test_disturbed_placements_are_allowed_and_come_again(data, seed):
    problem = data.draw(pinned(max_ops=20))
    devices = np.array(data.draw(allowed_placements(problem)))
    before = devices.copy()
    result = disturbed(problem, devices, np.random.default_rng(seed))
    assert (devices == before).all()
    assert problem.allowed[np.arange(problem.num_groups), result].all()
    assert (disturbed(problem, devices, np.random.default_rng(seed)) == result).all()


def test_few_runs_of_any_length_are_moved():
    devices, moved = np.zeros(40, dtype=np.int64), []
    for seed in range(200):
        result = disturbed(FREE, devices, np.random.default_rng(seed))
        along = result[FREE.group_order]
        assert np.count_nonzero(np.diff(along)) <= 2 * MOST_BLOCKS
        moved.append(np.count_nonzero(result))
    assert min(moved) <= 1
    assert 20 < max(moved) <= 40
    assert np.mean(np.array(moved) > 0) > 0.8
