"""The policy without torch: its embedding in NumPy, its scores in compiled code."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from placeto.envs.features.groups import GroupGraph
from placeto.envs.features.pairs import GROUP_FEATURES
from placeto.models.placeto.pools import Affinity, no_affinity
from placeto.models.placeto.settings import PlacetoNetworkConfig
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.jit import inner


class Weights(NamedTuple):
    """The network that scores pairs; inputs in rows."""

    pair: Features  # (2 * columns, hidden) of what is seen and pooled of a device; its difference
    group: Features  # (GROUP_FEATURES, hidden)
    embedding: Features  # (embedding, hidden)
    bias: Features  # (hidden,)
    second: Features  # (hidden, hidden)
    second_bias: Features  # (hidden,)
    last: Features  # (hidden,)


def weights_of(arrays: Mapping[str, Features], config: PlacetoNetworkConfig) -> Weights:
    """The scoring network of a policy's arrays, by the names of `PlacetoPolicy`'s parameters."""
    first = np.ascontiguousarray(arrays["first.weight"].T)
    pairs = 2 * config.pair_columns
    groups = pairs + GROUP_FEATURES
    return Weights(
        pair=first[:pairs],
        group=first[pairs:groups],
        embedding=first[groups:],
        bias=np.ascontiguousarray(arrays["first.bias"]),
        second=np.ascontiguousarray(arrays["second.weight"].T),
        second_bias=np.ascontiguousarray(arrays["second.bias"]),
        last=np.ascontiguousarray(arrays["last.weight"][0]),
    )


def embedding_of(
    arrays: Mapping[str, Features], graph: GroupGraph, config: PlacetoNetworkConfig
) -> tuple[Features, Affinity]:
    """What `PlacetoPolicy.embed` gives, (num_groups, embedding), and what heads make of it."""

    def linear(name: str, x: Features) -> Features:
        y: Features = x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]
        return y

    def heard(name: str, x: Features, senders: Ints, hearers: Ints) -> Features:
        messages = np.maximum(linear(name, np.concatenate([x[senders], graph.edges], axis=1)), 0)
        total = np.zeros((len(x), messages.shape[1]), dtype=np.float32)
        np.add.at(total, hearers, messages)
        count = np.maximum(np.bincount(hearers, minlength=len(x)), 1).astype(np.float32)
        mean: Features = total / count[:, None]
        return mean

    # Weights of a file may be finite and what comes of them not: then no device is preferred.
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.maximum(linear("enter", graph.attributes), 0)
        for _ in range(config.num_rounds):
            down = heard("down", x, graph.source, graph.target)
            up = heard("up", x, graph.target, graph.source)
            x = x + np.maximum(linear("mix", np.concatenate([x, down, up], axis=1)), 0)
        table: Features = np.tanh(linear("leave", x))
        heads = config.num_heads
        if not heads:
            return table, no_affinity(len(table))
        shape = len(x), heads, config.rank
        return table, Affinity(
            queries=linear("query", x).reshape(shape),
            keys=linear("key", x).reshape(shape),
            by_relation=arrays["by_relation"],
            apart=arrays["apart"],
        )


@inner(cache=True, fastmath=True)
def score(
    n: Weights, x: Features, y: Features, z: Features, allowed: Bools, logits: Floats
) -> None:
    """Scores the devices for one group.

    Args:
        n: the network.
        x: (num_devices, columns) of each device.
        y: (GROUP_FEATURES,) of the group.
        z: (embedding,) of the group.
        allowed: (num_devices,) whether the group may be there.
        logits: (num_devices,) filled; minus infinity where it may not.
    """
    hidden = len(n.bias)
    columns = x.shape[1]
    mean = np.zeros(columns, np.float32)
    count = 0
    for device in range(len(x)):
        if allowed[device]:
            count += 1
            for feature in range(columns):
                mean[feature] += x[device, feature]
    for feature in range(columns):
        mean[feature] /= max(count, 1)
    base = n.bias.copy()
    for feature in range(GROUP_FEATURES):
        value = y[feature]
        for unit in range(hidden):
            base[unit] += value * n.group[feature, unit]
    for feature in range(len(z)):
        value = z[feature]
        for unit in range(hidden):
            base[unit] += value * n.embedding[feature, unit]
    one = np.empty(hidden, np.float32)
    two = np.empty(hidden, np.float32)
    for device in range(len(x)):
        if not allowed[device]:
            logits[device] = -np.inf
            continue
        for unit in range(hidden):
            one[unit] = base[unit]
        for feature in range(columns):
            value = x[device, feature]
            above = value - mean[feature]
            for unit in range(hidden):
                one[unit] += value * n.pair[feature, unit] + above * n.pair[columns + feature, unit]
        for unit in range(hidden):
            two[unit] = n.second_bias[unit]
        for feature in range(hidden):
            value = one[feature]
            if value > 0:
                for unit in range(hidden):
                    two[unit] += value * n.second[feature, unit]
        total = np.float32(0)
        for unit in range(hidden):
            total += max(two[unit], np.float32(0)) * n.last[unit]
        logits[device] = total
