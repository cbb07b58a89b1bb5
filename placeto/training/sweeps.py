"""Episodes of a policy for any devices, each a sweep or several over the groups, in compiled code."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from placeto.features.pairs import (
    BINS,
    GROUP_FEATURES,
    PAIR_FEATURES,
    Features,
    Wiring,
    observe,
    survey,
)
from placeto.graph import Floats, Ints
from placeto.simulation.compiled import Compiled, Int32s
from placeto.simulation.kernel import advance
from placeto.simulation.run import read
from placeto.simulation.state import OPS, begin, view

HIDDEN = 64


class Weights(NamedTuple):
    """A policy's network, float32."""

    pair: Features  # (2 * PAIR_FEATURES, hidden) of a device's features and their difference
    group: Features  # (GROUP_FEATURES, hidden)
    table: Features  # (EMBEDDING, hidden)
    bias: Features  # (hidden,)
    second: Features  # (hidden, hidden)
    second_bias: Features  # (hidden,)
    last: Features  # (hidden,)


@njit(cache=True, fastmath=True)
def score(
    n: Weights, x: Features, y: Features, z: Features, allowed: Any, logits: Floats
) -> None:  # pragma: no cover
    num_devices = len(x)
    hidden = len(n.bias)
    mean = np.zeros(PAIR_FEATURES, np.float32)
    count = 0
    for device in range(num_devices):
        if allowed[device]:
            count += 1
            for feature in range(PAIR_FEATURES):
                mean[feature] += x[device, feature]
    for feature in range(PAIR_FEATURES):
        mean[feature] /= max(count, 1)
    base = n.bias.copy()
    for feature in range(GROUP_FEATURES):
        value = y[feature]
        for unit in range(hidden):
            base[unit] += value * n.group[feature, unit]
    for feature in range(len(z)):
        value = z[feature]
        for unit in range(hidden):
            base[unit] += value * n.table[feature, unit]
    one = np.empty(hidden, np.float32)
    two = np.empty(hidden, np.float32)
    for device in range(num_devices):
        if not allowed[device]:
            logits[device] = -np.inf
            continue
        for unit in range(hidden):
            one[unit] = base[unit]
        for feature in range(PAIR_FEATURES):
            value = x[device, feature]
            other = value - mean[feature]
            for unit in range(hidden):
                one[unit] += (
                    value * n.pair[feature, unit] + other * n.pair[PAIR_FEATURES + feature, unit]
                )
        for unit in range(hidden):
            two[unit] = n.second_bias[unit]
        for feature in range(hidden):
            value = max(one[feature], np.float32(0))
            if value > 0:
                for unit in range(hidden):
                    two[unit] += value * n.second[feature, unit]
        total = np.float32(0)
        for unit in range(hidden):
            total += max(two[unit], np.float32(0)) * n.last[unit]
        logits[device] = total


@njit(cache=True, parallel=True)
def sweep(
    c: Compiled,
    w: Wiring,
    n: Weights,
    order: Ints,
    devices: Ints,
    noise: Floats,
    penalty: float,
    sweeps: int,
    table: Features,
    forced: Ints,
    ints: Int32s,
    longs: Ints,
    reals: Floats,
    xs: Features,
    ys: Features,
    actions: Ints,
    costs: Floats,
    best: Ints,
    keep: bool,
) -> None:  # pragma: no cover
    """Runs episodes over all cores.

    Args:
        order: (steps,) groups as they are visited.
        devices: (episodes, num_groups) first and, afterwards, last placements.
        noise: (episodes, steps, num_devices) added to the scores.
        xs: (episodes, steps, num_devices, PAIR_FEATURES)
        ys: (episodes, steps, GROUP_FEATURES)
        actions: (episodes, steps)
        costs: (episodes, steps + 1) s
        best: (episodes, num_groups)
    """
    num_devices = len(c.device_kind)
    episodes = len(devices)
    workers = min(len(ints), episodes)
    for worker in prange(workers):
        s = view(c, ints[worker], longs[worker], reals[worker])
        peak = np.empty(num_devices, np.int64)
        nothing = np.empty(0)
        busy = np.empty((num_devices, BINS + 1))
        load = np.empty((num_devices, 2))
        x = np.empty((num_devices, PAIR_FEATURES), np.float32)
        y = np.empty(GROUP_FEATURES, np.float32)
        logits = np.empty(num_devices)
        for episode in range(worker * episodes // workers, (worker + 1) * episodes // workers):
            changed = True
            visited = np.zeros(devices.shape[1], np.bool_)
            visited[:] = sweeps > 0
            least = np.inf
            for step in range(len(order) + 1):
                if changed:
                    begin(c, devices[episode], s)
                    advance(c, s, 0, OPS)
                    step_time = read(s, peak, nothing)
                    survey(c, w, s, step_time, busy, load)
                    over = 0.0
                    for device in range(num_devices):
                        over += max(peak[device] - w.memory_limit[device], 0)
                    cost = step_time + penalty * over
                    if cost < least:
                        least = cost
                        best[episode] = devices[episode]
                costs[episode, step] = cost
                if step == len(order):
                    break
                group = order[step]
                observe(c, w, s, step_time, peak, busy, load, group, visited, sweeps + step // len(visited), x, y)
                if keep:
                    xs[episode, step] = x
                    ys[episode, step] = y
                score(n, x, y, table[group], w.allowed[group], logits)
                chosen, top = -1, -np.inf
                for device in range(num_devices):
                    value = logits[device] + noise[episode, step, device]
                    if value > top:
                        chosen, top = device, value
                if len(forced):
                    chosen = forced[episode, group]
                visited[group] = True
                actions[episode, step] = chosen
                changed = chosen != devices[episode, group]
                devices[episode, group] = chosen
