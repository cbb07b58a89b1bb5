"""Stages that run a schedule of `torch.distributed.pipelining`, pass by pass.

Op by op, a device that waits begins whatever is ready. PyTorch's processes do not: each makes its
passes in the order of the schedule, sends what a pass has made when all of it is made, and a
transfer begins when both of its ends are there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from placeto.graph import BACKWARD, FORWARD, UPDATE
from placeto.problem import PlacementProblem
from placeto.simulation.alone import ends_seconds, seconds_alone
from placeto.support.arrays import Floats, Ints

PipelineSchedule = Literal["gpipe", "1f1b", "interleaved"]


class Pass(NamedTuple):
    """A microbatch's pass through a stage."""

    stage: int
    microbatch: int
    forward: bool


class Turn(NamedTuple):
    """What a process does next, in this order; each may be left out.

    Attributes:
        receive: the pass whose inputs it waits for.
        send: meanwhile, the pass whose results it sends; it waits until they are sent.
        wait: the pass whose results, posted before, it waits for until they are sent.
        compute: the pass that it makes.
        post: the pass whose results it begins to send, and goes on.
    """

    receive: Pass | None = None
    send: Pass | None = None
    wait: Pass | None = None
    compute: Pass | None = None
    post: Pass | None = None


class Wire(NamedTuple):
    """What a microbatch's tensors take from a stage to another.

    Attributes:
        seconds: from when both ends are there to the arrival.
        sending: seconds that it costs the device that sends.
        receiving: that it costs the one that receives.
    """

    seconds: float
    sending: float
    receiving: float


@dataclass(frozen=True, eq=False)
class Stages:
    """What the stages of a pipeline compute and send.

    Attributes:
        device: (num_stages,) where each stage is.
        seconds: (num_stages, num_microbatches, 2) of each backward (0) and forward pass (1).
        update: (num_stages,) seconds of the optimizer.
        wires: (from, to) -> what goes there of each microbatch; to a stage before, on its way back.
        forks: whether a tensor goes to several stages that send something back, too.
    """

    device: Ints
    seconds: Floats
    update: Floats
    wires: Mapping[tuple[int, int], Wire]
    forks: bool = False


@dataclass(frozen=True)
class StagedStep:
    """A step of stages.

    Attributes:
        seconds: it takes; infinite if PyTorch does not run it, see `run_stages`.
        bubble: for which share of it processes neither compute nor send or receive.
    """

    seconds: float
    bubble: float


def stages_of(problem: PlacementProblem, devices: Ints) -> Stages:
    """The stages that a placement of a row of groups makes.

    Args:
        problem: its groups are a row, such as `stage_units`; a stretch of them is a stage.
        devices: (num_groups,) where each group is.
    """
    graph = problem.graph
    first = np.append(True, devices[1:] != devices[:-1])
    device = devices[first]
    stage = stage_of_groups(devices)[problem.op_group]
    took = problem.seconds_of(devices)
    took = took + (took > 0) * problem.arrays.launch_overhead[device[stage]]
    seconds = np.zeros((len(device), graph.num_microbatches, 2))
    for phase, way in ((BACKWARD, 0), (FORWARD, 1)):
        ops = (graph.phase == phase) & (graph.microbatch >= 0)
        np.add.at(seconds[..., way], (stage[ops], graph.microbatch[ops]), took[ops])
    updates = graph.phase == UPDATE
    update = np.zeros(len(device))
    np.add.at(update, stage[updates], took[updates])
    return Stages(device, seconds, update, *_wires(problem, device, stage))


def stage_of_groups(devices: Ints) -> Ints:
    """(num_groups,) the stage of each group of a row, by where each is; from 0."""
    stage: Ints = np.cumsum(np.append(False, devices[1:] != devices[:-1]))
    return stage


def _wires(
    problem: PlacementProblem, device: Ints, stage: Ints
) -> tuple[dict[tuple[int, int], Wire], bool]:
    """What the tensors of the first microbatch take that cross, and whether one forks.

    Those of other microbatches are alike.
    """
    graph, arrays = problem.graph, problem.arrays
    producer = graph.tensor_producer[graph.edge_tensor]
    source, target = stage[producer], stage[graph.edge_consumer]
    crosses = (source != target) & (graph.microbatch[producer] == 0)
    tensor, there = np.unique(np.stack([graph.edge_tensor, target])[:, crosses], axis=1)
    here = stage[graph.tensor_producer[tensor]]
    wires = {}
    for one, other in sorted(set(zip(here.tolist(), there.tolist(), strict=True))):
        sizes = graph.tensor_bytes[tensor[(here == one) & (there == other)]]
        channel = arrays.channel_between[device[one], device[other]]
        wires[one, other] = Wire(0.0, 0.0, 0.0)
        if channel >= 0 and sizes.any():
            same = np.full(len(sizes), channel)
            latency = float(arrays.latency[channel])
            carried = float((seconds_alone(arrays, same, sizes) - latency).sum())
            sending, receiving = (float(each.sum()) for each in ends_seconds(arrays, same, sizes))
            wires[one, other] = Wire(latency + carried, sending, receiving)
    ways = zip(here.tolist(), there.tolist(), tensor.tolist(), strict=True)
    forward = [each for one, other, each in ways if one < other and (other, one) in wires]
    return wires, len(set(forward)) < len(forward)


def run_stages(stages: Stages, schedule: PipelineSchedule) -> StagedStep:
    """A step of a pipeline: every process takes its turns, and waits where it has to.

    What is sent while the sender goes on costs it what sending costs; otherwise both ends wait
    until all has arrived. In an interleaved schedule processes are ready to receive from the
    beginning, in others when they come to it.

    PyTorch refuses to train stages of which one sends the same tensor to several others (2.13:
    "backward of skip connections not supported yet"), and to interleave stages of which one sends
    past the next. Processes of 1F1B may wait for each other for good if something is sent further.
    """
    further = any(abs(one - other) > 1 for one, other in stages.wires)
    if stages.forks or (further and schedule == "interleaved"):
        return StagedStep(np.inf, 1.0)
    return _Replay(stages, schedule).run()


class _Replay:
    """One step; of messages, by (from, to, microbatch), when each end was there."""

    def __init__(self, stages: Stages, schedule: PipelineSchedule) -> None:
        self.stages, self.schedule = stages, schedule
        self.sent: dict[tuple[int, int, int], float] = {}
        self.ready: dict[tuple[int, int, int], float] = {}
        self.clock = np.zeros(len(set(stages.device.tolist())))
        self.busy = np.zeros_like(self.clock)

    def run(self) -> StagedStep:
        count, parts = self.stages.seconds.shape[:2]
        processes = len(self.clock)
        every = [program(self.schedule, each, processes, count, parts) for each in range(processes)]
        running = [self._process(number, each) for number, each in enumerate(every)]
        for _ in range(sum(map(len, every)) + 1):
            running = [each for each in running if next(each, self) is not self]
        if running:  # they wait for each other
            return StagedStep(np.inf, 1.0)
        update = np.zeros(processes)
        np.add.at(update, np.arange(count) % processes, self.stages.update)
        seconds = float((self.clock + update).max())
        bubble = 1 - float((self.busy + update).mean()) / seconds if seconds else 0.0
        return StagedStep(seconds, bubble)

    def _process(self, number: int, own: list[Turn]) -> Iterator[None]:
        """Takes a process's turns, and comes back whenever another has to come first."""
        for turn in own:
            inward, outward = self._inputs(turn.receive), self._results(turn.send)
            early = self.schedule == "interleaved"
            self.ready.update(dict.fromkeys(inward, 0.0 if early else self.clock[number]))
            self.sent.update(dict.fromkeys(outward, self.clock[number]))
            awaited = [*inward, *outward, *self._results(turn.wait)]
            while not all(each in self.sent and each in self.ready for each in awaited):
                yield
            costs = sum(self._wire(each).receiving for each in inward)
            costs += sum(self._wire(each).sending for each in outward)
            self._take(number, costs)
            self.clock[number] = max(self.clock[number], *map(self._arrival, awaited), 0.0)
            if turn.compute is not None:
                stage, part, forward = turn.compute
                self._take(number, self.stages.seconds[stage, part, int(forward)])
            for each in self._results(turn.post):
                self.sent[each] = self.clock[number]
                self._take(number, self._wire(each).sending)

    def _take(self, number: int, seconds: float) -> None:
        self.clock[number] += seconds
        self.busy[number] += seconds

    def _inputs(self, made: Pass | None) -> list[tuple[int, int, int]]:
        if made is None:
            return []
        stage, part, forward = made
        return [
            (one, other, part)
            for one, other in self.stages.wires
            if other == stage and (one < other) == forward
        ]

    def _results(self, made: Pass | None) -> list[tuple[int, int, int]]:
        if made is None:
            return []
        stage, part, forward = made
        return [
            (one, other, part)
            for one, other in self.stages.wires
            if one == stage and (one < other) == forward
        ]

    def _wire(self, message: tuple[int, int, int]) -> Wire:
        return self.stages.wires[message[:2]]

    def _arrival(self, message: tuple[int, int, int]) -> float:
        return max(self.sent[message], self.ready[message]) + self._wire(message).seconds


def program(
    schedule: PipelineSchedule, process: int, processes: int, stages: int, count: int
) -> list[Turn]:
    """What a process does of a step, in order, before the optimizer.

    Args:
        schedule: of PyTorch's.
        process: its number; it has every stage that is this one modulo the processes.
        processes: how many there are.
        stages: how many there are.
        count: of microbatches.
    """
    if schedule == "gpipe":
        return _gpipe(process, count)
    if schedule == "1f1b":
        return _one_forward_one_backward(process, stages, count)
    passes = interleaved_passes(process, processes, stages // processes, count)
    return [Turn(receive=each, compute=each, post=each) for each in passes]


def _gpipe(stage: int, count: int) -> list[Turn]:
    found = []
    for forward in (True, False):
        passes = [Pass(stage, part, forward) for part in range(count)]
        found += [Turn(receive=each, compute=each, post=each) for each in passes]
        found += [Turn(wait=each) for each in passes]
    return found


def _one_forward_one_backward(stage: int, stages: int, count: int) -> list[Turn]:
    ahead = min(count, stages - stage)
    forward = [Pass(stage, part, True) for part in range(count)]
    backward = [Pass(stage, part, False) for part in range(count)]
    found = [Turn(receive=forward[0], compute=forward[0])]
    for before, each in pairwise(forward[:ahead]):
        found += [Turn(post=before), Turn(receive=each, compute=each), Turn(wait=before)]
    for part in range(count - ahead):
        back, there = backward[part], forward[ahead + part]
        found += [
            Turn(receive=back, send=forward[ahead + part - 1], compute=back),
            Turn(receive=there, send=back, compute=there),
        ]
    last = backward[count - ahead]
    found.append(Turn(receive=last, send=forward[-1], compute=last, post=last))
    for before, each in pairwise(backward[count - ahead :]):
        found += [Turn(receive=each, compute=each), Turn(wait=before, post=each)]
    return [*found, Turn(wait=backward[-1])]


def interleaved_passes(process: int, processes: int, chunks: int, microbatches: int) -> list[Pass]:
    """What one of some processes computes in turn, with so many stages each (`interleaved`).

    Forward passes until the first one is back, then one forward and one backward, in rounds of
    about as many microbatches as there are processes.
    """
    a_round = microbatches // max(1, microbatches // processes)
    count = chunks * microbatches
    ahead = min(count, (chunks - 1) * a_round + 2 * (processes - 1 - process))

    def pass_of(number: int, forward: bool) -> Pass:
        chunk = number // a_round % chunks
        part = number // (a_round * chunks) * a_round + number % a_round
        stage = (chunk if forward else chunks - 1 - chunk) * processes + process
        return Pass(stage, part, forward)

    found = [pass_of(number, True) for number in range(ahead)]
    for number in range(ahead, count):
        found += [pass_of(number, True), pass_of(number - ahead, False)]
    return found + [pass_of(number, False) for number in range(count - ahead, count)]
