"""What a policy for any devices sees of each (group, device) pair, read off the present schedule.

Static attributes and a graph embedding alone say little about where a group should go; when its
inputs could be on a device, how busy the device is then, and whom its outputs would keep waiting
say much. All of it is of the schedule that the simulator found for the present placement, and of
one group; what depends on devices is the same function of each device, so that a policy trained on
two devices can be asked about eight, and about kinds that it has never seen.

Times are shares of the step time, made comparable by `squash`. A transfer is reckoned to take what
it would take on an idle channel between idle devices; a tensor that goes to a device anyway, for
another group, costs nothing there.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from placeto.problem import PlacementProblem
from placeto.simulation.parts import end_seconds
from placeto.simulation.reduction import compiled
from placeto.simulation.state import Compiled, State
from placeto.support.arrays import Bools, Features, Floats, Ints
from placeto.support.dags import compressed, longest_paths
from placeto.support.jit import inner

BINS = 128  # of the step, in which a device's work is counted
WIDE = 0.02  # of the step, on both sides of an op's own time
SHARPNESS = 1000.0
ROOMY = 0.8  # of a device's memory, from which on it matters
TINY = 1e-12


class Pair(IntEnum):
    """Columns of what is seen of a group and a device.

    The group's consumers and inputs are those in other groups. Of a group without inputs, or
    without consumers, the latest is a whole step early.
    """

    HERE = 0  # 1 where the group is
    WORK = 1  # time of the group's ops there
    SLOWDOWN = 2  # log of that over the fastest device's
    INPUT_LATE = 3  # by how much the latest input would come after its first consumer's start
    INPUTS_LATE = 4  # the sum of that over the inputs that would
    RECEIVING = 5  # time on channels, and at both ends, of inputs that would have to be sent there
    INPUT_SHARE = 6  # of the inputs' bytes, what is there or comes there anyway
    OUTPUT_LATE = 7  # by how much an output would come after its consumer's start, the latest
    OUTPUTS_LATE = 8  # the sum of that over those that would
    SENDING = 9  # likewise, of the outputs that would have to be sent from there
    OUTPUT_SHARE = 10  # of the bytes that consumers read, what is read there
    BUSY_MEANWHILE = 11  # share of the ops' present times in which the device runs another op
    BUSY_AROUND = 12  # likewise, of these times and a little before and after
    BUSY = 13  # share of the step in which the device does other work
    MEMORY = 14  # share of its memory above four fifths, with the group there
    CHANNEL_OUT = 15  # share of the step for which the device sends
    CHANNEL_IN = 16  # share of the step for which it receives
    INPUT_SHARE_VISITED = 17  # of the inputs' bytes, what visited groups make there
    OUTPUT_SHARE_VISITED = 18  # of the bytes that consumers read, what visited groups read there
    VISITED_WORK = 19  # work of the visited groups there, over the mean of the devices


class Group(IntEnum):
    """Columns of what is seen of a group whatever the device."""

    WORK = 0  # time on the fastest device
    PATH_TO = 1  # longest path of work to it, as a share of the longest
    PATH_FROM = 2  # likewise, from it
    START = 3  # when its first op that takes time starts, as a share of the step; 1 if none does
    DEVICES = 4  # a third of the logarithm of their number, to base 2
    CHANNEL_OUT = 5  # share of the step for which its device sends
    CHANNEL_IN = 6  # share of the step for which its device receives
    BUSY = 7  # share of the step for which its device works
    INPUTS = 8  # how many bundles it reads
    OUTPUTS = 9  # how many tensors other groups read
    VISITED = 10  # share of the groups that were visited
    LATER = 11  # 1 in later sweeps
    WORK_LEFT = 12  # work of the groups not visited, over the step time
    WORK_VISITED = 13  # work of the visited groups, over the step time


PAIR_FEATURES, GROUP_FEATURES = len(Pair), len(Group)


class GroupIndex(NamedTuple):
    """How groups hang together, by the numbers of the compiled problem."""

    op_start: Ints  # (num_groups + 1,) compressed rows of
    ops: Ints  # (num_kept,) the ops of each group
    in_start: Ints  # (num_groups + 1,) compressed rows of
    incoming: Ints  # (num_bundles,) the bundles that each group reads
    out_start: Ints  # (num_groups + 1,) compressed rows of
    outgoing: Ints  # (num_bundles,) the bundles that others read of each group
    num_outputs: Ints  # (num_groups,) crossing tensors that each group makes
    bundle_tensor: Ints  # (num_bundles,) the crossing tensor of each bundle
    producer: Ints  # (num_crossing,) ops
    tensor_bytes: Floats  # (num_crossing,)
    group_seconds: Floats  # (num_groups, num_devices)
    alone: Floats  # (num_devices,) factor of these where all groups are on the device
    fastest: Floats  # (num_groups,) s, the least of the seconds
    group_memory: Ints  # (num_groups,) bytes
    memory_limit: Ints  # (num_devices,) bytes
    allowed: Bools  # (num_groups, num_devices)
    paths: Floats  # (num_groups, 2) of `path_shares`


def group_index(problem: PlacementProblem) -> GroupIndex:
    """How the groups of a problem hang together."""
    c, groups = compiled(problem, kernel=False).compiled, problem.num_groups
    kept = len(c.missing)
    reader = c.bundles["group"][:-1].astype(np.int64)
    group = c.ops["group"][:kept].astype(np.int64)
    producer = np.repeat(np.arange(kept), np.diff(c.ops["crosses"]))
    maker, bundles = group[producer], np.arange(len(reader))
    bundle_tensor = np.repeat(np.arange(len(producer)), np.diff(c.crossings["bundles"]))
    return GroupIndex(
        *compressed(groups, group, np.arange(kept)),
        *compressed(groups, reader, bundles),
        *compressed(groups, maker[bundle_tensor], bundles),
        num_outputs=np.bincount(maker, minlength=groups),
        bundle_tensor=bundle_tensor,
        producer=producer,
        tensor_bytes=problem.graph.tensor_bytes[c.crossings["tensor"][:-1]].astype(np.float64),
        group_seconds=problem.group_seconds,
        alone=problem.alone,
        fastest=problem.group_seconds.min(axis=1),
        group_memory=problem.group_memory,
        memory_limit=problem.memory_limit,
        allowed=problem.allowed,
        paths=path_shares(problem),
    )


def path_shares(problem: PlacementProblem) -> Floats:
    """(num_groups, 2) longest paths of work to a group's first op and from its first one on.

    Work is that of the fastest device, and the paths are shares of the graph's longest.
    """
    graph = problem.graph
    seconds = problem.op_seconds.min(axis=1)
    start, inputs = graph.inputs
    producers = graph.op_edges[0][inputs]
    before, after = longest_paths(graph.topological_order, seconds, start, producers)
    paths = np.stack([np.full(problem.num_groups, np.inf), np.zeros(problem.num_groups)], axis=1)
    np.minimum.at(paths[:, 0], problem.op_group, before)
    np.maximum.at(paths[:, 1], problem.op_group, after)
    shares: Floats = paths / max(float((before + after).max()), TINY)
    return shares


def log_shares(shares: Floats) -> Floats:
    """What `squash` makes of each of some shares, none of them negative."""
    values: Floats = np.log1p(SHARPNESS * shares) / np.log1p(SHARPNESS)
    return values


@inner(cache=True)
def squash(share: float) -> float:
    """A share of the step, with its sign, so that thousandths and tenths can both be told apart."""
    value: float = np.log1p(SHARPNESS * abs(share)) / np.log1p(SHARPNESS)
    return value if share >= 0 else -value


@inner(cache=True, error_model="numpy")
def busy_profile(
    c: Compiled, w: GroupIndex, s: State, step_time: float, busy: Floats, load: Floats
) -> None:
    """Sums up a schedule: a state at the end of a step of some seconds, with the starts of the ops.

    (num_devices, BINS + 1) `busy` is filled with the seconds that each device works, at ops and at
    what it sends and receives, until the beginning of each of `BINS` equal parts of the step, and
    until its end; (num_devices, 2) `load` with the shares of the step for which a channel is taken
    by what it sends, and what it receives.
    """
    num_columns = len(c.op_seconds) // max(len(c.missing), 1)
    busy[:] = 0
    load[:] = 0
    bin_seconds = step_time / BINS
    for op in range(len(c.missing)):
        device = s.device_of[c.ops[op].group]
        seconds = c.op_seconds[num_columns * op + s.devices[device].kind]
        if seconds > 0:
            # Sends and receives may come between: it is spread over the time until its end.
            lasts = s.op_finish[op] - s.op_start[op] if len(s.op_finish) > 0 else seconds
            _add_work(busy, device, s.op_start[op], seconds, lasts, bin_seconds)
    longest = len(s.part_start) // max(len(s.parts), 1)
    for number in range(s.status[0].num_transfers if len(c.costs) > 0 else 0):
        transfer = s.transfers[number]
        channel, size = transfer.channel, w.tensor_bytes[transfer.crossing]
        sends = end_seconds(c.cost_start, c.costs, 2 * channel, size)
        if sends > 0:
            start = s.part_start[longest * number]
            _add_work(busy, transfer.sender, start, sends, sends, bin_seconds)
        receives = end_seconds(c.cost_start, c.costs, 2 * channel + 1, size)
        if receives > 0:
            last = max(c.path_start[channel + 1] - c.path_start[channel], 1) + 1
            device = s.copies[transfer.copy].device
            start = s.part_start[longest * number + last]
            _add_work(busy, device, start, receives, receives, bin_seconds)
    for device in range(len(busy)):
        for part in range(BINS):
            busy[device, part + 1] += busy[device, part]
    for number in range(s.status[0].num_transfers):
        transfer = s.transfers[number]
        channel, size = transfer.channel, w.tensor_bytes[transfer.crossing]
        taken = (size / c.bandwidth[channel] + c.overhead[channel]) / step_time
        load[transfer.sender, 0] += taken
        copy = transfer.copy
        while copy >= 0:
            load[s.copies[copy].device, 1] += taken
            copy = s.copies[copy].next


@inner(cache=True, error_model="numpy")
def _add_work(
    busy: Floats, device: int, start: float, seconds: float, lasts: float, bin_seconds: float
) -> None:
    """Adds some seconds of a device's work to the parts of the step over which it lasts, evenly."""
    part = min(int(start / bin_seconds), BINS - 1)
    room = (part + 1) * bin_seconds - start
    share = seconds / lasts
    while lasts > room and part < BINS - 1:
        busy[device, part + 1] += share * room
        lasts -= room
        part += 1
        room = bin_seconds
    busy[device, part + 1] += share * lasts


@inner(cache=True)
def _finish(c: Compiled, s: State, op: int, device: int) -> float:
    """When an op finishes, or would on a device where it is not."""
    if len(s.op_finish) > 0 and s.device_of[c.ops[op].group] == device:
        there: float = s.op_finish[op]
        return there
    finish: float = s.op_start[op] + _seconds(c, s, op, device)
    return finish


@inner(cache=True)
def _seconds(c: Compiled, s: State, op: int, device: int) -> float:
    """What an op takes, or would take on a device where it is not."""
    num_columns = len(c.op_seconds) // max(len(c.missing), 1)
    here = s.device_of[c.ops[op].group] == device
    seconds: float = c.op_seconds[
        num_columns * op + (s.devices[device].kind if here else c.device_kind[device])
    ]
    return seconds


@inner(cache=True)
def worked(busy: Floats, device: int, begin: float, end: float) -> float:
    """Seconds that a device works between two times, given in parts of the step (`BINS`)."""
    return _worked_until(busy, device, end) - _worked_until(busy, device, begin)


@inner(cache=True)
def _worked_until(busy: Floats, device: int, time: float) -> float:
    time = min(max(time, 0.0), float(BINS))
    part = min(int(time), BINS - 1)
    before, after = busy[device, part], busy[device, part + 1]
    value: float = before + (time - part) * (after - before)
    return value


@inner(cache=True)
def first_start(c: Compiled, s: State, bundle: int) -> float:
    """When the first consumer in a bundle starts, in seconds."""
    start = np.inf
    for index in range(c.bundles[bundle].consumers, c.bundles[bundle + 1].consumers):
        start = min(start, s.op_start[c.bundled[index]])
    return start


@inner(cache=True)
def read_on(c: Compiled, s: State, tensor: int, until: int, but: int, device: int) -> bool:
    """Whether one of a tensor's bundles up to `until`, other than `but`, is read on a device."""
    for bundle in range(c.crossings[tensor].bundles, until):
        if bundle != but and s.device_of[c.bundles[bundle].group] == device:
            return True
    return False


@inner(cache=True, error_model="numpy")
def _neighbours(
    c: Compiled, w: GroupIndex, s: State, share: float, group: int, device: int, visited: Bools,
    reads: bool, x: Features,
) -> None:  # fmt: skip
    """Fills in what is seen of the inputs that a group `reads`, or of its outputs, on a device.

    `share` is 1 / step time.
    """
    start, bundles = (w.in_start, w.incoming) if reads else (w.out_start, w.outgoing)
    latest, late, sending = -1 / share, 0.0, 0.0
    everything, there, visited_there = 0.0, 0.0, 0.0
    for index in range(start[group], start[group + 1]):
        bundle = bundles[index]
        tensor = w.bundle_tensor[bundle]
        size, op = w.tensor_bytes[tensor], w.producer[tensor]
        if reads:
            neighbour = c.ops[op].group
            source, target = s.device_of[neighbour], device
        else:
            neighbour = c.bundles[bundle].group
            source, target = device, s.device_of[neighbour]
        arrival = _finish(c, s, op, source)
        everything += size
        if source == target:
            there += size
            if visited[neighbour]:
                visited_there += size
        else:
            channel = c.channel_between[len(c.device_kind) * source + target]
            seconds = size / c.bandwidth[channel]
            sends = receives = 0.0
            if len(c.costs) > 0:
                sends = end_seconds(c.cost_start, c.costs, 2 * channel, size)
                receives = end_seconds(c.cost_start, c.costs, 2 * channel + 1, size)
            arrival += max(seconds, sends, receives) + c.latency[channel]
            # An input may come there for any other group; of an output's readers the first pays.
            end = c.crossings[tensor + 1].bundles if reads else bundle
            if not read_on(c, s, tensor, end, bundle, target):
                sending += seconds + c.overhead[channel] + (sends + receives)
            elif reads:
                there += size
        delay = arrival - first_start(c, s, bundle)
        latest = max(latest, delay)
        late += max(delay, 0.0)
    column = Pair.INPUT_LATE if reads else Pair.OUTPUT_LATE  # the first of four
    x[column] = squash(latest * share)
    x[column + 1] = squash(late * share)
    x[column + 2] = squash(sending * share)
    x[column + 3] = there / everything if everything > 0 else 0.0
    column = Pair.INPUT_SHARE_VISITED if reads else Pair.OUTPUT_SHARE_VISITED
    x[column] = visited_there / everything if everything > 0 else 0.0


@inner(cache=True, error_model="numpy")
def _company(
    c: Compiled, w: GroupIndex, s: State, step_time: float, busy: Floats, group: int, device: int,
    x: Features,
) -> float:  # fmt: skip
    """Fills in how busy a device is while a group's ops run; when the first of them starts."""
    here = s.device_of[group] == device
    parts, wide = BINS / step_time, WIDE * BINS
    first, work, meanwhile, around = step_time, 0.0, 0.0, 0.0
    for index in range(w.op_start[group], w.op_start[group + 1]):
        op = w.ops[index]
        seconds = _seconds(c, s, op, device)
        if seconds > 0:
            start = s.op_start[op]
            first = min(first, start)
            work += seconds
            own = seconds if here else 0.0
            begin, end = start * parts, (start + seconds) * parts
            meanwhile += max(worked(busy, device, begin, end) - own, 0.0)
            nearby = max(worked(busy, device, begin - wide, end + wide) - own, 0.0)
            around += nearby * seconds / (seconds + 2 * WIDE * step_time)
    x[Pair.BUSY_MEANWHILE] = meanwhile / work if work > 0 else 0.0
    x[Pair.BUSY_AROUND] = around / work if work > 0 else 0.0
    return first


@inner(cache=True, error_model="numpy")
def observe(
    c: Compiled, w: GroupIndex, s: State, step_time: float, peak: Ints, busy: Floats, load: Floats,
    group: int, visited: Bools, later: bool, x: Features, y: Features,
) -> None:  # fmt: skip
    """What is seen of one group and each device, of a schedule as `busy_profile` summed it up.

    `peak` is (num_devices,) bytes; `visited` (num_groups,) whose devices were chosen in this
    episode, and `later` whether all were before. Filled are `x`, (num_devices, at least
    PAIR_FEATURES), with 0 in further columns and for devices that the group may not be on, and `y`,
    (GROUP_FEATURES,).
    """
    num_devices, here, share = len(c.device_kind), s.device_of[group], 1 / step_time
    count, left, done = 0, 0.0, 0.0
    x[:] = 0
    for other in range(len(visited)):
        if visited[other]:
            seconds = w.group_seconds[other, s.device_of[other]]
            x[s.device_of[other], Pair.VISITED_WORK] += seconds * share
            done += seconds
            count += 1
        else:
            left += w.fastest[other]
    first = step_time
    for device in range(num_devices):
        row = x[device]
        if not w.allowed[group, device]:
            row[:] = 0
            continue
        work = w.group_seconds[group, device]
        row[Pair.VISITED_WORK] -= done / num_devices * share
        row[Pair.HERE] = 1.0 if device == here else 0.0
        row[Pair.WORK] = squash(work * share)
        row[Pair.SLOWDOWN] = np.log(max(work, TINY) / max(w.fastest[group], TINY))
        _neighbours(c, w, s, share, group, device, visited, True, row)
        _neighbours(c, w, s, share, group, device, visited, False, row)
        first = min(first, _company(c, w, s, step_time, busy, group, device, row))
        own = work if device == here else 0.0
        if s.devices[device].kind != c.device_kind[device]:
            own *= w.alone[device]
        row[Pair.BUSY] = (busy[device, BINS] - own) * share
        memory = peak[device] + (0 if device == here else w.group_memory[group])
        row[Pair.MEMORY] = max(memory / max(w.memory_limit[device], 1) - ROOMY, 0.0)
        row[Pair.CHANNEL_OUT] = load[device, 0]
        row[Pair.CHANNEL_IN] = load[device, 1]
    y[Group.WORK] = squash(w.fastest[group] * share)
    y[Group.PATH_TO] = w.paths[group, 0]
    y[Group.PATH_FROM] = w.paths[group, 1]
    y[Group.START] = first * share
    y[Group.DEVICES] = np.log2(num_devices) / 3
    y[Group.CHANNEL_OUT] = load[here, 0]
    y[Group.CHANNEL_IN] = load[here, 1]
    y[Group.BUSY] = busy[here, BINS] * share
    y[Group.INPUTS] = squash((w.in_start[group + 1] - w.in_start[group]) / SHARPNESS)
    y[Group.OUTPUTS] = squash(w.num_outputs[group] / SHARPNESS)
    y[Group.VISITED] = count / len(visited)
    y[Group.LATER] = 1.0 if later else 0.0
    y[Group.WORK_LEFT] = left * share
    y[Group.WORK_VISITED] = done * share
