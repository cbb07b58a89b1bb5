"""A graph network of the present schedule, in compiled code."""

from typing import NamedTuple

import numpy as np

from placeto.envs.features.pairs import TINY, GroupIndex, squash
from placeto.simulation.parts import end_seconds
from placeto.simulation.state import Compiled, State
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.jit import inner

NODE = 14
REFRESHES = 8  # a sweep


class Net(NamedTuple):
    enter: Features  # (NODE, W)
    enter_bias: Features
    down: Features  # (W, W)
    down_edge: Features  # (W,)
    down_bias: Features
    up: Features
    up_edge: Features
    up_bias: Features
    after: Features  # (W, W) next on the device
    after_bias: Features
    before: Features
    before_bias: Features
    mix: Features  # (5W, W)
    mix_bias: Features
    leave: Features  # (W, E)
    leave_bias: Features
    pool: Features  # (W, Q)
    pool_bias: Features
    rounds: int
    pooled: int


class Arcs(NamedTuple):
    source: Ints
    target: Ints
    share: Features  # (num_group_edges,)
    into: Features  # (num_groups,) 1 / how many come in
    out: Features
    seconds: Features  # share of work of each group, fastest


@inner(cache=True, error_model="numpy")
def look(c: Compiled, w: GroupIndex, s: State, seconds: float, visited: Bools, busy: Floats,
         last_bin: int, nodes: Features, follower: Ints, before: Ints) -> None:  # fmt: skip
    """Fills (num_groups, NODE) attributes of groups, and who is next and before on the device."""
    kept, groups, devices = len(c.missing), len(w.fastest), len(c.device_kind)
    num_columns = len(c.op_seconds) // max(kept, 1)
    latest = np.full(kept, np.inf)
    on_device = np.full(devices, np.inf)
    order = np.argsort(s.op_start)
    start = np.full(groups, np.inf)
    finish = np.zeros(groups)
    slack = np.full(groups, np.inf)
    for index in range(kept - 1, -1, -1):
        op = order[index]
        group = c.ops[op].group
        device = s.device_of[group]
        lasts = c.op_seconds[num_columns * op + s.devices[device].kind]
        end = min(seconds, on_device[device])
        for entry in range(c.ops[op].local, c.ops[op + 1].local):
            end = min(end, latest[c.local[entry]])
        for tensor in range(c.ops[op].crosses, c.ops[op + 1].crosses):
            size = w.tensor_bytes[tensor]
            for bundle in range(c.crossings[tensor].bundles, c.crossings[tensor + 1].bundles):
                target = s.device_of[c.bundles[bundle].group]
                delay = 0.0
                if target != device:
                    channel = c.channel_between[devices * device + target]
                    delay = size / c.bandwidth[channel]
                    if len(c.costs) > 0:
                        delay = max(delay, end_seconds(c.cost_start, c.costs, 2 * channel, size))
                        delay = max(
                            delay, end_seconds(c.cost_start, c.costs, 2 * channel + 1, size)
                        )
                    delay += c.latency[channel]
                for position in range(c.bundles[bundle].consumers, c.bundles[bundle + 1].consumers):
                    end = min(end, latest[c.bundled[position]] - delay)
        latest[op] = end - lasts
        if lasts > 0:
            on_device[device] = latest[op] - c.launch_overhead[device]
            begun = s.op_start[op]
            start[group] = min(start[group], begun)
            finish[group] = max(finish[group], begun + lasts)
            slack[group] = min(slack[group], latest[op] - begun)
    share = 1 / seconds
    for group in range(groups):
        device = s.device_of[group]
        if start[group] == np.inf:
            start[group] = finish[group] = seconds
            slack[group] = seconds
        row = nodes[group]
        work = w.group_seconds[group, device]
        left = max(slack[group] * share, 0.0)
        row[0] = squash(work * share)
        row[1] = start[group] * share
        row[2] = finish[group] * share
        row[3] = squash(left)
        row[4] = 1.0 if left < 1e-4 else 0.0
        row[5] = w.paths[group, 0]
        row[6] = w.paths[group, 1]
        row[7] = 1.0 if visited[group] else 0.0
        row[8] = busy[device, last_bin] * share
        row[9] = np.log(max(work, TINY) / max(w.fastest[group], TINY)) if work > 0 else 0.0
        row[10] = squash(w.fastest[group] * share)
        row[11] = squash((w.in_start[group + 1] - w.in_start[group]) / 1000)
        row[12] = squash(w.num_outputs[group] / 1000)
        row[13] = 0.0
    follower[:] = -1
    before[:] = -1
    last = np.full(devices, -1)
    for group in np.argsort(start):
        device = s.device_of[group]
        if last[device] >= 0:
            follower[last[device]] = group
            before[group] = last[device]
        last[device] = group


@inner(cache=True, fastmath=True)
def _linear(x: Features, weight: Features, bias: Features) -> Features:
    y = np.dot(x, weight)
    for row in range(len(y)):
        for unit in range(len(bias)):
            y[row, unit] += bias[unit]
    return y


@inner(cache=True, fastmath=True)
def _hear(y: Features, edge: Features, share: Features, source: Ints, target: Ints,
          scale: Features, into: Features, at: int) -> None:  # fmt: skip
    width = y.shape[1]
    for index in range(len(source)):
        a, b = source[index], target[index]
        value, by = share[index], scale[b]
        for unit in range(width):
            message = y[a, unit] + value * edge[unit]
            if message > 0:
                into[b, at + unit] += message * by


@inner(cache=True, fastmath=True)
def _follow(y: Features, other: Ints, into: Features, at: int) -> None:
    width = y.shape[1]
    for group in range(len(other)):
        if other[group] >= 0:
            for unit in range(width):
                into[group, at + unit] = max(y[other[group], unit], np.float32(0))


@inner(cache=True, fastmath=True)
def embed(net: Net, arcs: Arcs, nodes: Features, follower: Ints, before: Ints, devices: Ints,
          table: Features, pools: Features) -> None:  # fmt: skip
    """Fills (num_groups, E) embeddings and (num_devices, Q) pools."""
    width = len(net.enter_bias)
    x = np.maximum(_linear(nodes, net.enter, net.enter_bias), np.float32(0))
    for _ in range(net.rounds):
        heard = np.zeros((len(x), 5 * width), np.float32)
        heard[:, :width] = x
        y = _linear(x, net.down, net.down_bias)
        _hear(y, net.down_edge, arcs.share, arcs.source, arcs.target, arcs.into, heard, width)
        y = _linear(x, net.up, net.up_bias)
        _hear(y, net.up_edge, arcs.share, arcs.target, arcs.source, arcs.out, heard, 2 * width)
        _follow(_linear(x, net.after, net.after_bias), follower, heard, 3 * width)
        _follow(_linear(x, net.before, net.before_bias), before, heard, 4 * width)
        x = x + np.maximum(_linear(heard, net.mix, net.mix_bias), np.float32(0))
    table[:] = np.tanh(_linear(x, net.leave, net.leave_bias))
    pools[:] = 0
    if net.pooled:
        sums = np.zeros((len(pools), width), np.float32)
        weight = np.zeros(len(pools), np.float32)
        for group in range(len(x)):
            weight[devices[group]] += arcs.seconds[group]
            for unit in range(width):
                sums[devices[group], unit] += arcs.seconds[group] * x[group, unit]
        for device in range(len(pools)):
            if weight[device] > 0:
                sums[device] /= weight[device]
        pools[:] = np.tanh(_linear(sums, net.pool, net.pool_bias))
