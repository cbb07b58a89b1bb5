import numpy as np

from placeto.envs import generator
from placeto.features import (
    node_feature_names,
    node_features,
    num_node_features,
    present_device,
    static_features,
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
