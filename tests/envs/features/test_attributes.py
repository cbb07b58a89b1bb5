import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeto.envs import generator
from placeto.envs.features import (
    node_feature_names,
    node_features,
    num_node_features,
    present_device,
    static_features,
    update_node_features,
)


def test_features_of_the_unequal_fork_by_hand():
    problem = generator.unequal()
    devices = np.array([[1, 0, 1, 1]])
    features = node_features(
        static_features(problem),
        devices,
        group_start=np.array([[0.0, 0.006, 0.005, 0.010]]),
        step_time=np.array([0.016]),
        current=np.array([2]),
        visited=np.array([[True, True, False, False]]),
    )
    assert features.shape == (1, 4, num_node_features(2))
    names = node_feature_names(["device0", "device1"])
    assert len(names) == features.shape[2]
    column = dict(zip(names, features[0].T, strict=True))
    np.testing.assert_allclose(column["seconds on device0"], 1.0)
    np.testing.assert_allclose(column["seconds on device1"], 0.5)
    np.testing.assert_allclose(column["output bytes"], [1, 0, 0, 0])
    np.testing.assert_allclose(column["memory bytes"], [1, 0, 0, 0])
    np.testing.assert_allclose(column["is on device0"], [0, 1, 0, 0])
    np.testing.assert_allclose(column["is on device1"], [1, 0, 1, 1])
    np.testing.assert_allclose(column["is the current group"], [0, 0, 1, 0])
    np.testing.assert_allclose(column["was visited"], [1, 1, 0, 0])
    start = column["start after the current group's"]
    np.testing.assert_allclose(start, [-5 / 16, 1 / 16, 0, 5 / 16], rtol=1e-6)
    np.testing.assert_array_equal(present_device(features)[0].argmax(axis=1), devices[0])


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_updates_are_what_a_rebuild_would_give_bit_by_bit(seed, padding):
    rng = np.random.default_rng(seed)
    problem = generator.unequal()
    static, batch, groups = static_features(problem), 3, problem.num_groups
    devices, current = rng.integers(2, size=(batch, groups)), rng.integers(groups, size=batch)
    starts, step_time = rng.random((batch, groups)), rng.random(batch)
    visited = np.zeros((batch, groups), dtype=bool)

    def rebuilt():
        return node_features(static, devices, starts, step_time, current, visited)

    features = np.full((batch, groups + padding, num_node_features(2)), 7, dtype=np.float32)
    features[:, :groups] = rebuilt()
    for _ in range(6):
        rows = np.flatnonzero(rng.random(batch) < 0.7)
        others = np.setdiff1d(np.arange(batch), rows)
        untouched = features[others].copy()
        chosen = current.copy()
        devices[rows, chosen[rows]] = rng.integers(2, size=len(rows))
        visited[rows, chosen[rows]] = True
        current[rows] = rng.integers(groups, size=len(rows))
        step_time[rows] = rng.choice([0.0, 0.3, 0.9], size=len(rows))
        starts[rows] = rng.random((len(rows), groups)) * step_time[rows, None]
        update_node_features(features, rows, devices, starts, step_time, chosen, current)
        assert features[rows, :groups].tobytes() == rebuilt()[rows].tobytes()
        assert features[others].tobytes() == untouched.tobytes()
        assert (features[:, groups:] == 7).all()
