"""What a policy sees, as arrays: the one source for environments and networks.

The attributes are those of Placeto (Addanki et al. 2019, arXiv:1906.08879, section 3.2, and its
released code): cost, output bytes, memory, current device, current node, visited, start time;
each divided by the graph's largest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from placeto.problem import PlacementProblem
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.jit import njit

TINY = float(np.finfo(float).tiny)


def num_node_features(num_devices: int) -> int:
    """How many attributes a group has on a cluster of `num_devices`."""
    return 2 * num_devices + 5


def node_feature_names(device_names: list[str]) -> list[str]:
    """What each column of the node features is."""
    return [
        *(f"seconds on {name}" for name in device_names),
        "output bytes",
        "memory bytes",
        *(f"is on {name}" for name in device_names),
        "is the current group",
        "was visited",
        "start after the current group's",
    ]


@dataclass(frozen=True, eq=False)
class StaticFeatures:
    """What of the features does not change during an episode.

    Attributes:
        node: (num_groups, num_devices + 2) seconds on each device, output bytes and memory bytes,
            each over the largest; seconds where a group cannot run count as the largest.
        edge: (num_group_edges, 1) bytes of `problem.group_edges` over the largest.
    """

    node: Features
    edge: Features


def static_features(problem: PlacementProblem) -> StaticFeatures:
    """The features of a problem that no placement changes."""
    graph, seconds = problem.graph, problem.group_seconds
    finite = np.isfinite(seconds)
    seconds = np.where(finite, seconds, seconds[finite].max(initial=0.0))
    outputs = np.zeros(problem.num_groups)
    np.add.at(outputs, problem.op_group[graph.tensor_producer], graph.tensor_bytes)
    columns = (seconds, outputs[:, None], problem.group_memory[:, None])
    node = np.concatenate([_over_largest(column) for column in columns], axis=1)
    edge = _over_largest(problem.group_edges[2][:, None])
    return StaticFeatures(node.astype(np.float32), edge.astype(np.float32))


def node_features(
    static: StaticFeatures,
    devices: Ints,
    group_start: Floats,
    step_time: Floats,
    current: Ints,
    visited: Bools,
) -> Features:
    """Attributes of every group, for a batch of states of one problem.

    Args:
        static: of the problem.
        devices: (batch, num_groups) the current placements.
        group_start: (batch, num_groups) seconds, first start of an op of each group that takes
            time; 0 if none does.
        step_time: (batch,) seconds.
        current: (batch,) the group whose device is chosen next.
        visited: (batch, num_groups) whose device was chosen in this episode.

    Returns:
        (batch, num_groups, num_node_features) values between -1 and 1.
    """
    batch, num_groups = devices.shape
    num_devices = static.node.shape[1] - 2
    features = np.zeros((batch, num_groups, num_node_features(num_devices)), dtype=np.float32)
    rows, groups = np.arange(batch), np.arange(num_groups)
    features[:, :, : num_devices + 2] = static.node
    features[rows[:, None], groups, num_devices + 2 + devices] = 1
    features[rows, current, -3] = 1
    features[:, :, -2] = visited
    start = group_start - group_start[rows, current][:, None]
    features[:, :, -1] = start / np.maximum(step_time, TINY)[:, None]
    return features


@njit(cache=True, error_model="numpy")
def update_node_features(
    features: Features,
    rows: Ints,
    devices: Ints,
    group_start: Floats,
    step_time: Floats,
    chosen: Ints,
    current: Ints,
) -> None:
    """Takes the features of some episodes over a step, in place, to what `node_features` says.

    A step changes what is known of the group whose device was `chosen`, (batch,), which group is
    the current one, and the start times; the rest of `features`, (batch, max_groups,
    num_node_features), is left as it is, as is padding, which comes after the problem's groups.
    Of the other arrays, as `node_features` takes them, only the (n,) `rows` are read.
    """
    num_devices = (features.shape[2] - 5) // 2
    present = num_devices + 2
    flag, visited, start = present + num_devices, present + num_devices + 1, features.shape[2] - 1
    for row in rows:
        before, after = chosen[row], current[row]
        features[row, before, present:flag] = 0
        features[row, before, present + devices[row, before]] = 1
        features[row, before, visited] = 1
        features[row, before, flag] = 0
        features[row, after, flag] = 1
        origin = group_start[row, after]
        whole = max(step_time[row], TINY)
        for group in range(devices.shape[1]):
            features[row, group, start] = (group_start[row, group] - origin) / whole


def present_device(features: Any) -> Any:
    """The columns of node features that say where a group is, (..., num_devices), one-hot."""
    num_devices = (features.shape[-1] - 5) // 2
    return features[..., num_devices + 2 : 2 * num_devices + 2]


def _over_largest(values: Floats | Ints) -> Floats:
    return values / max(float(values.max(initial=0)), TINY)
