"""What a policy for any devices sees of each (group, device) pair, read off the present schedule.

Static attributes and a graph embedding alone say little about where a group should go; when its
inputs could be on a device, how busy the device is then, and whom its outputs would keep waiting
say much. All of it is of the schedule that the simulator found for the present placement, and of
one group; what depends on devices is the same function of each device, so that a policy trained on
two devices can be asked about eight, and about kinds that it has never seen.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from placeto.graph import Floats, Ints
from placeto.order import compressed
from placeto.problem import Bools, PlacementProblem
from placeto.simulation.compiled import (
    BUNDLE_ROW,
    BUNDLED,
    CROSSES,
    CROSSING_ROW,
    FIRST_BUNDLE,
    GROUP,
    OP_WORDS,
    TENSOR,
    TO_GROUP,
    Compiled,
)
from placeto.simulation.reduction import compiled
from placeto.simulation.state import (
    CHANNEL,
    CROSSING,
    NUM_TRANSFERS,
    TRANSFER_ROW,
    State,
)

Features = NDArray[np.float32]

PAIR_FEATURES = 20
GROUP_FEATURES = 14
BINS = 128  # of the step, in which a device's work is counted
WIDE = 0.02  # of the step, on both sides of an op's own time
SHARPNESS = 1000.0


class Wiring(NamedTuple):
    """How groups hang together, by the numbers of the compiled problem."""

    op_start: Ints  # (num_groups + 1,) compressed rows of
    ops: Ints  # (num_kept,) the ops of each group
    in_start: Ints  # (num_groups + 1,) compressed rows of
    incoming: Ints  # (num_bundles,) the bundles that each group reads
    out_start: Ints  # (num_groups + 1,) compressed rows of
    outgoing: Ints  # (num_crossing,) the crossing tensors that each group makes
    bundle_tensor: Ints  # (num_bundles,) the crossing tensor of each bundle
    producer: Ints  # (num_crossing,) ops
    tensor_bytes: Floats  # (num_crossing,)
    group_seconds: Floats  # (num_groups, num_devices)
    fastest: Floats  # (num_groups,) s, of these
    group_memory: Ints  # (num_groups,) bytes
    memory_limit: Ints  # (num_devices,) bytes
    allowed: Bools  # (num_groups, num_devices)
    path: Floats  # (num_groups, 2) longest paths to and from each group, as shares of the longest


def wiring(problem: PlacementProblem) -> Wiring:
    """How the groups of a problem hang together."""
    c = compiled(problem).compiled
    kept = len(c.missing)
    op_rows = c.op_rows.reshape(-1, 2 * OP_WORDS)
    group = op_rows[:kept, GROUP].astype(np.int64)
    op_start, ops = compressed(problem.num_groups, group, np.arange(kept))
    crosses = op_rows[:, CROSSES].astype(np.int64)
    producer = np.repeat(np.arange(kept), np.diff(crosses))
    crossing = c.crossing_rows.reshape(-1, CROSSING_ROW)
    bundle_tensor = np.repeat(
        np.arange(len(crossing) - 1), np.diff(crossing[:, FIRST_BUNDLE].astype(np.int64))
    )
    bundles = c.bundle_rows.reshape(-1, BUNDLE_ROW)
    to_group = bundles[:-1, TO_GROUP].astype(np.int64)
    in_start, incoming = compressed(problem.num_groups, to_group, np.arange(len(to_group)))
    out_start, outgoing = compressed(
        problem.num_groups, group[producer], np.arange(len(producer))
    )
    seconds = problem.group_seconds
    return Wiring(
        op_start,
        ops,
        in_start,
        incoming,
        out_start,
        outgoing,
        bundle_tensor,
        producer,
        problem.graph.tensor_bytes[crossing[:-1, TENSOR]].astype(np.float64),
        np.ascontiguousarray(seconds),
        seconds.min(axis=1),
        problem.group_memory,
        problem.memory_limit,
        problem.allowed,
        _paths(problem),
    )


def _paths(problem: PlacementProblem) -> Floats:
    """(num_groups, 2) longest paths of work up to and from the groups' ops, of the longest."""
    graph = problem.graph
    seconds = problem.op_seconds.min(axis=1)
    seconds = np.where(np.isfinite(seconds), seconds, 0.0)
    before = np.zeros(graph.num_ops)
    after = seconds.copy()
    a = problem.arrays
    _longest(
        graph.topological_order, seconds, a.input_start, a.tensor_producer[a.edge_tensor[a.inputs]],
        before, after,
    )  # fmt: skip
    longest = max(float((before + after).max()), np.finfo(float).tiny)
    paths = np.zeros((problem.num_groups, 2))
    earliest = np.full(problem.num_groups, np.inf)
    np.minimum.at(earliest, problem.op_group, before)
    paths[:, 0] = earliest
    np.maximum.at(paths[:, 1], problem.op_group, after)
    shares: Floats = paths / longest
    return shares


@njit(cache=True)
def _longest(
    order: Ints, seconds: Floats, start: Ints, producers: Ints, before: Floats, after: Floats
) -> None:  # pragma: no cover
    for op in order:
        for position in range(start[op], start[op + 1]):
            other = producers[position]
            before[op] = max(before[op], before[other] + seconds[other])
    for op in order[::-1]:
        for position in range(start[op], start[op + 1]):
            other = producers[position]
            after[other] = max(after[other], seconds[other] + after[op])


@njit(cache=True, fastmath=True)
def squash(share: float) -> float:  # pragma: no cover
    """A share of the step, signed, so that thousandths and tenths can both be told apart."""
    value: float = np.log1p(SHARPNESS * abs(share)) * (1 / np.log1p(SHARPNESS))
    return value if share >= 0 else -value


@njit(cache=True, error_model="numpy")
def survey(
    c: Compiled, w: Wiring, s: State, step_time: float, busy: Floats, load: Floats
) -> None:  # pragma: no cover
    """Sums up a schedule.

    Args:
        c: the compiled problem.
        w: its wiring.
        s: at the end of a step, with the starts of the ops.
        step_time: seconds.
        busy: (num_devices, BINS + 1) filled with the seconds that each device works up to the end
            of each bin, from 0.
        load: (num_devices, 2) filled with the shares of the step for which each device's outgoing
            and incoming channels are taken.
    """
    num_devices = len(c.device_kind)
    num_kinds = len(c.op_seconds) // max(len(c.missing), 1)
    busy[:] = 0
    load[:] = 0
    if not step_time > 0:
        return
    per = BINS / step_time
    bin_seconds = step_time / BINS
    for op in range(len(c.missing)):
        device = s.device_of[c.op_rows[2 * OP_WORDS * op + GROUP]]
        seconds = c.op_seconds[num_kinds * op + c.device_kind[device]]
        if seconds > 0:
            start = s.op_start[op]
            first = min(int(start * per), BINS - 1)
            room = (first + 1) * bin_seconds - start
            while seconds > room and first < BINS - 1:
                busy[device, first + 1] += room
                seconds -= room
                first += 1
                room = bin_seconds
            busy[device, first + 1] += seconds
    for device in range(num_devices):
        for bin in range(BINS):
            busy[device, bin + 1] += busy[device, bin]
    for transfer in range(s.counts[NUM_TRANSFERS]):
        row = TRANSFER_ROW * transfer
        channel = s.transfers[row + CHANNEL]
        taken = (
            w.tensor_bytes[s.transfers[row + CROSSING]] / c.bandwidth[channel]
            + c.overhead[channel]
        )
        load[s.transfers[row + 3], 0] += taken / step_time
        copy = s.transfers[row + 2]
        while copy >= 0:
            load[s.copies[4 * copy + 2], 1] += taken / step_time
            copy = s.copies[4 * copy + 1]


@njit(cache=True, error_model="numpy", fastmath=True)
def worked(busy: Floats, device: int, start: float, end: float, per: float) -> float:  # pragma: no cover
    """Seconds that a device works between two times."""
    return _until(busy, device, end * per) - _until(busy, device, start * per)


@njit(cache=True, error_model="numpy", fastmath=True)
def _until(busy: Floats, device: int, place: float) -> float:  # pragma: no cover
    if place <= 0:
        return 0.0
    if place >= BINS:
        return busy[device, BINS]
    bin = int(place)
    value: float = busy[device, bin] + (place - bin) * (busy[device, bin + 1] - busy[device, bin])
    return value


@njit(cache=True, error_model="numpy")
def observe(
    c: Compiled,
    w: Wiring,
    s: State,
    step_time: float,
    peak: Ints,
    busy: Floats,
    load: Floats,
    group: int,
    visited: Bools,
    sweep: int,
    x: Features,
    y: Features,
) -> None:  # pragma: no cover
    """What is seen of one group and each device.

    Args:
        c: the compiled problem.
        w: its wiring.
        s: at the end of a step, with the starts of the ops.
        step_time: seconds.
        peak: (num_devices,) bytes.
        busy: by `survey`, as is `load`.
        load: likewise.
        group: which.
        x: (num_devices, PAIR_FEATURES) filled.
        y: (GROUP_FEATURES,) filled.
    """
    num_devices = len(c.device_kind)
    num_kinds = len(c.op_seconds) // max(len(c.missing), 1)
    here = s.device_of[group]
    per = BINS / step_time
    wide = WIDE * step_time
    share = 1.0 / step_time
    first_start = step_time
    decided = np.zeros(num_devices)
    all_decided = undecided = 0.0
    count = 0
    for other in range(len(visited)):
        if visited[other]:
            decided[s.device_of[other]] += w.group_seconds[other, s.device_of[other]]
            count += 1
        else:
            undecided += w.fastest[other]
    for device in range(num_devices):
        all_decided += decided[device]
    for device in range(num_devices):
        seen_in = seen_out = 0.0
        in_late = out_late = -step_time
        in_seconds = out_seconds = in_bytes = out_bytes = all_in = all_out = 0.0
        late_in = late_out = 0.0
        for index in range(w.in_start[group], w.in_start[group + 1]):
            bundle = w.incoming[index]
            tensor = w.bundle_tensor[bundle]
            size = w.tensor_bytes[tensor]
            op = w.producer[tensor]
            maker = c.op_rows[2 * OP_WORDS * op + GROUP]
            source = s.device_of[maker]
            arrival = s.op_start[op] + c.op_seconds[num_kinds * op + c.device_kind[source]]
            all_in += size
            if source == device:
                in_bytes += size
                if visited[maker]:
                    seen_in += size
            else:
                channel = c.channel_between[num_devices * source + device]
                arrival += size / c.bandwidth[channel] + c.latency[channel]
                there = False
                for other in range(
                    c.crossing_rows[CROSSING_ROW * tensor + FIRST_BUNDLE],
                    c.crossing_rows[CROSSING_ROW * (tensor + 1) + FIRST_BUNDLE],
                ):
                    there |= (
                        other != bundle
                        and s.device_of[c.bundle_rows[BUNDLE_ROW * other + TO_GROUP]] == device
                    )
                if there:
                    in_bytes += size
                else:
                    in_seconds += size / c.bandwidth[channel] + c.overhead[channel]
            wanted = np.inf
            for consumer in range(
                c.bundle_rows[BUNDLE_ROW * bundle + BUNDLED],
                c.bundle_rows[BUNDLE_ROW * (bundle + 1) + BUNDLED],
            ):
                wanted = min(wanted, s.op_start[c.bundled[consumer]])
            in_late = max(in_late, arrival - wanted)
            late_in += max(arrival - wanted, 0.0)
        for index in range(w.out_start[group], w.out_start[group + 1]):
            tensor = w.outgoing[index]
            size = w.tensor_bytes[tensor]
            op = w.producer[tensor]
            done = s.op_start[op] + c.op_seconds[num_kinds * op + c.device_kind[device]]
            first = c.crossing_rows[CROSSING_ROW * tensor + FIRST_BUNDLE]
            last = c.crossing_rows[CROSSING_ROW * (tensor + 1) + FIRST_BUNDLE]
            for bundle in range(first, last):
                reader = c.bundle_rows[BUNDLE_ROW * bundle + TO_GROUP]
                target = s.device_of[reader]
                arrival = done
                all_out += size
                if target == device:
                    out_bytes += size
                    if visited[reader]:
                        seen_out += size
                else:
                    channel = c.channel_between[num_devices * device + target]
                    arrival += size / c.bandwidth[channel] + c.latency[channel]
                    there = False
                    for other in range(first, bundle):
                        there |= s.device_of[c.bundle_rows[BUNDLE_ROW * other + TO_GROUP]] == target
                    if not there:
                        out_seconds += size / c.bandwidth[channel] + c.overhead[channel]
                wanted = np.inf
                for consumer in range(
                    c.bundle_rows[BUNDLE_ROW * bundle + BUNDLED],
                    c.bundle_rows[BUNDLE_ROW * (bundle + 1) + BUNDLED],
                ):
                    wanted = min(wanted, s.op_start[c.bundled[consumer]])
                out_late = max(out_late, arrival - wanted)
                late_out += max(arrival - wanted, 0.0)
        narrow_busy = wide_busy = narrow = broad = before_busy = 0.0
        for index in range(w.op_start[group], w.op_start[group + 1]):
            op = w.ops[index]
            seconds = c.op_seconds[num_kinds * op + c.device_kind[device]]
            if seconds > 0:
                start = s.op_start[op]
                first_start = min(first_start, start)
                taken = worked(busy, device, start, start + seconds, per)
                around = worked(busy, device, start - wide, start + seconds + wide, per)
                if device == here:
                    taken, around = max(taken - seconds, 0.0), max(around - seconds, 0.0)
                narrow_busy += taken
                wide_busy += around * seconds / (seconds + 2 * wide)
                narrow += seconds
        mine = w.group_seconds[group, device]
        if not np.isfinite(mine):
            mine = step_time
        fastest = max(w.fastest[group], 1e-12)
        x[device, 0] = 1.0 if device == here else 0.0
        x[device, 1] = squash(mine * share)
        x[device, 2] = np.log(max(mine, 1e-12) / fastest)
        x[device, 3] = squash(in_late * share)
        x[device, 4] = squash(late_in * share)
        x[device, 5] = squash(in_seconds * share)
        x[device, 6] = in_bytes / all_in if all_in > 0 else 0.0
        x[device, 7] = squash(out_late * share)
        x[device, 8] = squash(late_out * share)
        x[device, 9] = squash(out_seconds * share)
        x[device, 10] = out_bytes / all_out if all_out > 0 else 0.0
        x[device, 11] = narrow_busy / narrow if narrow > 0 else 0.0
        x[device, 12] = wide_busy / narrow if narrow > 0 else 0.0
        x[device, 13] = busy[device, BINS] * share - (mine * share if device == here else 0.0)
        over = peak[device] + (0 if device == here else w.group_memory[group])
        x[device, 14] = max(over / max(w.memory_limit[device], 1) - 0.8, 0.0)
        x[device, 15] = load[device, 0]
        x[device, 16] = load[device, 1]
        x[device, 17] = seen_in / all_in if all_in > 0 else 0.0
        x[device, 18] = seen_out / all_out if all_out > 0 else 0.0
        x[device, 19] = (decided[device] - all_decided / num_devices) * share
    y[10] = count / len(visited)
    y[11] = min(sweep, 1)
    y[12] = undecided * share
    y[13] = all_decided * share
    y[0] = squash(w.fastest[group] * share)
    y[1] = w.path[group, 0]
    y[2] = w.path[group, 1]
    y[3] = first_start * share
    y[4] = np.log2(num_devices) / 3
    y[5] = load[here, 0]
    y[6] = load[here, 1]
    y[7] = busy[here, BINS] * share
    y[8] = squash((w.in_start[group + 1] - w.in_start[group]) * 0.001)
    y[9] = squash((w.out_start[group + 1] - w.out_start[group]) * 0.001)
