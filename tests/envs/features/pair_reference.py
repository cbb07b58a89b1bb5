"""What a policy sees of groups and devices, worked out a second time: plain Python, slow.

It shares nothing with `placeto.envs.features.pairs` but the names and meanings of the columns, and
reads the schedule of the whole graph, as `simulate` gives it.
"""

import math

import numpy as np

from placeto import PlacementProblem, Schedule, simulate
from placeto.envs.features.pairs import BINS, ROOMY, TINY, WIDE, Group, Pair
from tests.reference import end_seconds


def squashed(share: float) -> float:
    return math.copysign(math.log(1 + 1000 * abs(share)) / math.log(1001), share)


class Scene:
    """The schedule of a placement, and what the columns are made of."""

    def __init__(self, problem: PlacementProblem, devices: list[int], visited: set[int]) -> None:
        self.problem, self.devices, self.visited = problem, devices, visited
        self.schedule: Schedule = simulate(problem, devices)
        self.step = max(self.schedule.step_time, TINY)
        self.group = problem.op_group.tolist()
        self.start = self.schedule.start.tolist()
        graph = problem.graph
        self.size = graph.tensor_bytes.tolist()
        self.producer = graph.tensor_producer.tolist()
        # (tensor, group that reads it) -> when the first of the group's consumers starts
        self.read: dict[tuple[int, int], float] = {}
        edges = zip(graph.edge_tensor.tolist(), graph.edge_consumer.tolist(), strict=True)
        for tensor, op in edges:
            if self.group[op] != self.maker(tensor):
                key = tensor, self.group[op]
                self.read[key] = min(self.read.get(key, math.inf), self.start[op])
        self.counted = [self.work_by_part(device) for device in range(problem.num_devices)]

    def maker(self, tensor: int) -> int:
        return self.group[self.producer[tensor]]

    def ops(self, group: int) -> list[int]:
        return [op for op, other in enumerate(self.group) if other == group]

    def seconds(self, op: int, device: int) -> float:
        kind = self.problem.cluster.devices[device].kind
        return float(self.problem.graph.op_seconds[kind][op])

    def takes(self, op: int, device: int) -> float:
        """Seconds of an op on a device; alone there, if all are where it is."""
        lone = {device} == set(self.devices)
        return self.seconds(op, device) * (float(self.problem.alone[device]) if lone else 1.0)

    def finish(self, op: int, device: int) -> float:
        """When an op finishes, or would on a device where it is not."""
        if self.devices[self.group[op]] == device:
            return float(self.schedule.finish[op])
        return self.start[op] + self.seconds(op, device)

    def work(self, group: int, device: int) -> float:
        return math.fsum(self.seconds(op, device) for op in self.ops(group))

    def fastest(self, group: int) -> float:
        return min(self.work(group, device) for device in range(self.problem.num_devices))

    def channel(self, source: int, target: int):
        one, other = (self.problem.cluster.devices[end].name for end in (source, target))
        for channel in self.problem.cluster.channels:
            if one in channel.sources and other in channel.destinations:
                return channel
        raise AssertionError("devices without a channel")

    def carried(self, tensor: int, source: int, target: int) -> float:
        """Until a tensor is there, on an idle channel."""
        if source == target:
            return 0.0
        channel = self.channel(source, target)
        slowest = max(self.size[tensor] / channel.bandwidth, *self.ends(tensor, source, target))
        return slowest + channel.latency_seconds

    def ends(self, tensor: int, source: int, target: int) -> tuple[float, float]:
        """What it costs to send and to receive a tensor."""
        channel, size = self.channel(source, target), self.size[tensor]
        return end_seconds(channel.send, size), end_seconds(channel.receive, size)

    def taken(self, tensor: int, source: int, target: int) -> float:
        """How long a tensor takes the channel and the devices at its ends."""
        channel, ends = self.channel(source, target), self.ends(tensor, source, target)
        return self.size[tensor] / channel.bandwidth + channel.overhead_seconds + sum(ends)

    def work_by_part(self, device: int) -> list[float]:
        """Seconds of work in each of `BINS` equal parts of the step."""
        edges = [self.step * part / BINS for part in range(BINS + 1)]
        parts = [0.0] * BINS
        work = [
            (self.start[op], self.finish(op, device), self.takes(op, device))
            for op, group in enumerate(self.group)
            if self.devices[group] == device
        ]
        ends, here = self.schedule.transfers.parts, self.schedule.transfers.parts.device == device
        begins, finishes = ends.start[here].tolist(), ends.finish[here].tolist()
        work += [(begin, end, end - begin) for begin, end in zip(begins, finishes, strict=True)]
        for begin, end, seconds in work:
            for part in range(BINS if end > begin else 0):
                inside = max(min(end, edges[part + 1]) - max(begin, edges[part]), 0)
                parts[part] += seconds * inside / (end - begin)
        return parts

    def worked(self, device: int, begin: float, end: float) -> float:
        """Seconds of work between two times, spread evenly over each part of the step."""
        length = self.step / BINS
        shares = (
            max(min(end, (part + 1) * length) - max(begin, part * length), 0) / length
            for part in range(BINS)
        )
        return math.fsum(
            share * work for share, work in zip(shares, self.counted[device], strict=True)
        )

    def channel_shares(self, device: int) -> tuple[float, float]:
        """Of the step, for which channels carry what a device sends, and what it receives."""
        sends = receives = 0.0
        transfers = self.schedule.transfers
        for index, tensor in enumerate(transfers.tensor.tolist()):
            channel = self.problem.cluster.channels[transfers.channel[index]]
            taken = self.size[tensor] / channel.bandwidth + channel.overhead_seconds
            sends += taken * (self.devices[self.maker(tensor)] == device)
            receives += taken * bool(transfers.destinations[index, device])
        return sends / self.step, receives / self.step


def reference_pairs(scene: Scene, group: int) -> np.ndarray:
    """(num_devices, len(Pair)); zeros for devices that the group may not be on."""
    devices = range(scene.problem.num_devices)
    x = np.zeros((len(devices), len(Pair)))
    for device in devices:
        if scene.problem.allowed[group, device]:
            row = _own(scene, group, device)
            row |= _inputs(scene, group, device)
            row |= _outputs(scene, group, device)
            x[device] = [row[column] for column in Pair]
    return x


def reference_group(scene: Scene, group: int, later: bool) -> np.ndarray:
    """(len(Group),)"""
    problem, step, here = scene.problem, scene.step, scene.devices[group]
    groups = range(problem.num_groups)
    before, behind = _paths(scene)
    longest = max(max(before[op] + behind[op] for op in range(problem.graph.num_ops)), TINY)
    ops = scene.ops(group)
    busy = [
        scene.start[op]
        for op in ops
        for device in np.flatnonzero(problem.allowed[group]).tolist()
        if scene.seconds(op, device) > 0
    ]
    sends, receives = scene.channel_shares(here)
    y = {
        Group.WORK: squashed(scene.fastest(group) / step),
        Group.PATH_TO: min(before[op] for op in ops) / longest,
        Group.PATH_FROM: max(behind[op] for op in ops) / longest,
        Group.START: min(busy, default=step) / step,
        Group.DEVICES: math.log2(problem.num_devices) / 3,
        Group.CHANNEL_OUT: sends,
        Group.CHANNEL_IN: receives,
        Group.BUSY: sum(scene.counted[here]) / step,
        Group.INPUTS: squashed(sum(reader == group for _, reader in scene.read) / 1000),
        Group.OUTPUTS: squashed(
            len({tensor for tensor, _ in scene.read if scene.maker(tensor) == group}) / 1000
        ),
        Group.VISITED: len(scene.visited) / len(groups),
        Group.LATER: float(later),
        Group.WORK_LEFT: sum(scene.fastest(other) for other in groups if other not in scene.visited)
        / step,
        Group.WORK_VISITED: sum(scene.work(other, scene.devices[other]) for other in scene.visited)
        / step,
    }
    return np.array([y[column] for column in Group])


def _own(scene: Scene, group: int, device: int) -> dict[Pair, float]:
    problem, step = scene.problem, scene.step
    here = scene.devices[group] == device
    work = scene.work(group, device)
    own = sum(scene.takes(op, device) for op in scene.ops(group))
    done = [0.0] * problem.num_devices
    for other in scene.visited:
        done[scene.devices[other]] += scene.work(other, scene.devices[other])
    meanwhile = around = timed = 0.0
    for op in scene.ops(group):
        seconds = scene.takes(op, device)
        if seconds > 0:
            begin, end, wide = scene.start[op], scene.start[op] + seconds, WIDE * step
            itself = seconds if here else 0.0
            timed += seconds
            meanwhile += max(scene.worked(device, begin, end) - itself, 0)
            nearby = max(scene.worked(device, begin - wide, end + wide) - itself, 0)
            around += seconds * nearby / (seconds + 2 * wide)
    memory = int(scene.schedule.peak_memory[device])
    if not here:
        memory += int(problem.group_memory[group])
    sends, receives = scene.channel_shares(device)
    return {
        Pair.HERE: float(here),
        Pair.WORK: squashed(work / step),
        Pair.SLOWDOWN: math.log(max(work, TINY) / max(scene.fastest(group), TINY)),
        Pair.BUSY_MEANWHILE: meanwhile / timed if timed else 0.0,
        Pair.BUSY_AROUND: around / timed if timed else 0.0,
        Pair.BUSY: (sum(scene.counted[device]) - (own if here else 0.0)) / step,
        Pair.MEMORY: max(
            memory / max(problem.cluster.devices[device].memory_bytes, 1) - ROOMY, 0.0
        ),
        Pair.CHANNEL_OUT: sends,
        Pair.CHANNEL_IN: receives,
        Pair.VISITED_WORK: (done[device] - sum(done) / len(done)) / step,
    }


def _inputs(scene: Scene, group: int, device: int) -> dict[Pair, float]:
    delays, receiving, total, there, made = [-scene.step], 0.0, 0, 0, 0
    for (tensor, reader), start in scene.read.items():
        if reader != group:
            continue
        op, maker = scene.producer[tensor], scene.maker(tensor)
        source, size = scene.devices[maker], scene.size[tensor]
        delays.append(scene.finish(op, source) + scene.carried(tensor, source, device) - start)
        anyway = any(
            other != group and scene.devices[other] == device
            for read, other in scene.read
            if read == tensor
        )
        total += size
        if source == device or anyway:
            there += size
        else:
            receiving += scene.taken(tensor, source, device)
        if source == device and maker in scene.visited:
            made += size
    return {
        Pair.INPUT_LATE: squashed(max(delays) / scene.step),
        Pair.INPUTS_LATE: squashed(sum(max(delay, 0) for delay in delays) / scene.step),
        Pair.RECEIVING: squashed(receiving / scene.step),
        Pair.INPUT_SHARE: there / total if total else 0.0,
        Pair.INPUT_SHARE_VISITED: made / total if total else 0.0,
    }


def _outputs(scene: Scene, group: int, device: int) -> dict[Pair, float]:
    delays, total, there, read_there = [-scene.step], 0, 0, 0
    sent: set[tuple[int, int]] = set()  # a tensor goes to a device once, whoever reads it there
    for (tensor, reader), start in scene.read.items():
        if scene.maker(tensor) != group:
            continue
        op, target = scene.producer[tensor], scene.devices[reader]
        delays.append(scene.finish(op, device) + scene.carried(tensor, device, target) - start)
        total += scene.size[tensor]
        if target != device:
            sent.add((tensor, target))
        else:
            there += scene.size[tensor]
            read_there += scene.size[tensor] * (reader in scene.visited)
    sending = math.fsum(scene.taken(tensor, device, target) for tensor, target in sent)
    return {
        Pair.OUTPUT_LATE: squashed(max(delays) / scene.step),
        Pair.OUTPUTS_LATE: squashed(sum(max(delay, 0) for delay in delays) / scene.step),
        Pair.SENDING: squashed(sending / scene.step),
        Pair.OUTPUT_SHARE: there / total if total else 0.0,
        Pair.OUTPUT_SHARE_VISITED: read_there / total if total else 0.0,
    }


def _paths(scene: Scene) -> tuple[dict[int, float], dict[int, float]]:
    """Of each op, the longest path of work up to its start, and from its start on."""
    graph, devices = scene.problem.graph, range(scene.problem.num_devices)
    work = [min(scene.seconds(op, device) for device in devices) for op in range(graph.num_ops)]
    inputs: dict[int, list[int]] = {op: [] for op in range(graph.num_ops)}
    for tensor, op in zip(graph.edge_tensor.tolist(), graph.edge_consumer.tolist(), strict=True):
        inputs[op].append(scene.producer[tensor])
    before: dict[int, float] = {}
    behind = dict(enumerate(work))
    order = graph.topological_order.tolist()
    for op in order:
        before[op] = max((before[other] + work[other] for other in inputs[op]), default=0.0)
    for op in reversed(order):
        for other in inputs[op]:
            behind[other] = max(behind[other], work[other] + behind[op])
    return before, behind
