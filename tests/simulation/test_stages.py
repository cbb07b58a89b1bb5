"""Stages of a pipeline by hand, and against the calls that PyTorch's own schedules make."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, schedules

from placeto import PlacementProblem
from placeto.simulation.stages import Stages, Wire, run_stages, stages_of
from tests.builders import make_cluster, make_graph

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class Recorded:
    """A stage of PyTorch's, of which only is known what is asked of it and when."""

    has_backward = True

    def __init__(self, number, count, wires, log):
        self.stage_index, self.count, self.wires, self.log = number, count, wires, log

    def _messages(self, end, forward, part):
        return [
            (one, other, part)
            for one, other in self.wires
            if (one, other)[end] == self.stage_index and (one < other) == forward
        ]

    def get_fwd_recv_ops(self, part):
        return [("receive", each) for each in self._messages(1, True, part)]

    def get_fwd_send_ops(self, part):
        return [("send", each) for each in self._messages(0, True, part)]

    def get_bwd_recv_ops(self, part):
        return [("receive", each) for each in self._messages(1, False, part)]

    def get_bwd_send_ops(self, part):
        return [("send", each) for each in self._messages(0, False, part)]

    def forward_one_chunk(self, part, *args, **kwargs):
        self.log.append(("pass", (part, 1)))

    def backward_one_chunk(self, part, **kwargs):
        self.log.append(("pass", (part, 0)))

    def perform_reduce_grad(self, factor):
        pass


def calls_of(schedule, number, count, parts, wires):
    """What PyTorch's schedule does on one process: posts, waits and passes, in order."""
    log = []

    def post(ops, desc=None):
        log.append(("post", tuple(ops)))
        return list(ops)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedules, "_batch_p2p", post)
        patch.setattr(schedules, "_sorted_batch_p2p", lambda ops, desc=None: {0: post(ops)})
        patch.setattr(schedules, "_wait_batch_p2p", lambda work: log.append(("wait", tuple(work))))
        made = SCHEDULES[schedule].__new__(SCHEDULES[schedule])
        made._stage = Recorded(number, count, wires, log)
        made._n_microbatches, made._num_stages, made.scale_grads = parts, count, True
        made._check_inputs = lambda *args: ([()] * parts, [{}] * parts)
        made._initialize_stage = made._maybe_compute_loss = made._update_losses = lambda *args: None
        made._maybe_get_loss = lambda *args: None
        made._step_microbatches()
    return log


def gets_stuck(logs):
    """Whether processes wait for each other, where either end of a transfer waits for the other."""
    posted, places, moved = set(), [0] * len(logs), True
    while moved:
        moved = False
        for number, log in enumerate(logs):
            while places[number] < len(log):
                what, ops = log[places[number]]
                if what == "post":
                    posted |= set(ops)
                elif what == "wait" and any(
                    (end, message) not in posted
                    for _, message in ops
                    for end in ("send", "receive")
                ):
                    break
                places[number], moved = places[number] + 1, True
    return any(place < len(log) for place, log in zip(places, logs, strict=True))


def reference(stages, schedule):
    """Seconds of a step, by PyTorch's calls, whose times are put right until nothing changes."""
    count, parts = stages.seconds.shape[:2]
    logs = [calls_of(schedule, each, count, parts, stages.wires) for each in range(count)]
    if gets_stuck(logs):
        return np.inf
    posted = {}  # ("send" or "receive", message) -> when
    before = None
    while posted != before:
        before, clocks = dict(posted), []
        for number, log in enumerate(logs):
            clock = 0.0
            for place, (what, ops) in enumerate(log):
                if what == "pass":
                    clock += stages.seconds[number, ops[0], ops[1]]
                elif what == "post":
                    at_once = log[place + 1 : place + 2] == [("wait", ops)]
                    for end, message in ops:
                        posted[end, message] = clock
                        if not at_once:
                            assert end == "send"
                            clock += stages.wires[message[:2]].sending
                else:
                    if log[place - 1] == ("post", ops):
                        for end, message in ops:
                            wire = stages.wires[message[:2]]
                            clock += wire.sending if end == "send" else wire.receiving
                    for _, message in ops:
                        both = [posted.get((end, message), 0.0) for end in ("send", "receive")]
                        clock = max(clock, max(both) + stages.wires[message[:2]].seconds)
            clocks.append(clock + stages.update[number])
    return max(clocks)


@st.composite
def some_stages(draw):
    count = draw(st.integers(1, 4))
    parts = draw(st.integers(count, 6))
    numbers = st.integers(0, 9)
    wires = {}
    for one, other in itertools.combinations(range(count), 2):
        if other == one + 1 or draw(st.booleans()):  # others are residual connections
            for way in ((one, other), (other, one)):
                sending, receiving = draw(numbers) / 8, draw(numbers) / 8
                longer = max(sending, receiving) + draw(numbers) / 8
                wires[way] = Wire(longer, sending, receiving)
    shape = (count, parts, 2)
    drawn = draw(st.lists(numbers, min_size=2 * count * parts, max_size=2 * count * parts))
    update = np.array(draw(st.lists(numbers, min_size=count, max_size=count)), float)
    return Stages(np.arange(count), np.reshape(drawn, shape).astype(float), update, wires)


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(stages=some_stages())
def test_a_step_is_that_of_pytorchs_schedule(schedule, stages):
    found = run_stages(stages, schedule)
    assert found.seconds == pytest.approx(reference(stages, schedule))
    work = stages.seconds.sum(axis=(1, 2)) + stages.update
    assert found.seconds >= work.max() - 1e-9
    assert -1e-9 <= found.bubble <= 1


def residual(backward):
    """Four layers, the first of which the last one reads, too; a group is a layer."""
    tensors = [("f0", 8, ["f1", "f3"]), ("f1", 8, ["f2"]), ("f2", 8, ["f3"])]
    back = [("f3", 0, ["b3"]), ("b3", 8, ["b2"]), ("b3/0", 8, ["b0"]), ("b2", 8, ["b1"])]
    names = [f"f{layer}" for layer in range(4)]
    group = [0, 1, 2, 3]
    if backward:
        names += ["b3", "b3/0", "b2", "b1", "b0"]
        group += [3, 3, 2, 1, 0]
        tensors += [*back, ("b1", 8, ["b0"])]
    count = len(names)
    work = {f"{part}{name}": 1.0 for part in "xy" for name in names}
    every = [
        (f"{part}{one}", size, [f"{part}{other}" for other in others])
        for part in "xy"
        for one, size, others in tensors
    ]
    graph = replace(
        make_graph(work, every),
        microbatch=np.repeat([0, 1], count),
        copy_of=[-1] * count + list(range(count)),
        phase=[int("b" in name) for name in names] * 2,
    )
    return PlacementProblem(graph, make_cluster(4), np.array(group * 2))


@pytest.mark.parametrize(
    ("devices", "wires", "forks"),
    [
        ((0, 0, 0, 0), set(), False),
        ((0, 1, 1, 1), {(0, 1)}, False),
        ((0, 0, 0, 1), {(0, 1)}, False),
        ((0, 0, 1, 2), {(0, 1), (1, 2), (0, 2)}, False),  # f0 goes to the last stage alone
        ((0, 1, 2, 2), {(0, 1), (1, 2), (0, 2)}, True),
        ((0, 1, 2, 3), {(0, 1), (1, 2), (2, 3), (0, 3)}, True),
    ],
)
def test_a_tensor_that_several_stages_read(devices, wires, forks):
    back = {(other, one) for one, other in wires}
    stages = stages_of(residual(backward=True), np.array(devices))
    assert (set(stages.wires), stages.forks) == (wires | back, forks)
    assert (run_stages(stages, "gpipe").seconds < np.inf) == (not forks)
    neighbours = all(other == one + 1 for one, other in wires)
    assert (run_stages(stages, "interleaved").seconds < np.inf) == neighbours
    # Without a way back it may go to as many as it likes.
    forward = stages_of(residual(backward=False), np.array(devices))
    assert (set(forward.wires), forward.forks) == (wires, False)


def test_what_stages_take_is_the_sum_of_their_ops():
    problem = residual(backward=True)
    stages = stages_of(problem, np.array([0, 0, 1, 1]))
    assert stages.device.tolist() == [0, 1]
    assert stages.seconds.tolist() == [[[2.0, 2.0]] * 2, [[3.0, 2.0]] * 2]
    assert stages.update.tolist() == [0.0, 0.0]
    # 1 byte/s: f1 and f0 go forward; b2 and b3/0 back.
    assert {way: wire.seconds for way, wire in stages.wires.items()} == {(0, 1): 16, (1, 0): 16}
    # A launch takes 0.5 s, whatever it launches, and a transfer has a latency of 2 s.
    cluster = make_cluster(4, launch_overhead=0.5, latency=2.0)
    slower = replace(problem, cluster=cluster)
    stages = stages_of(slower, np.array([0, 0, 1, 1]))
    assert stages.seconds.tolist() == [[[3.0, 3.0]] * 2, [[4.5, 3.0]] * 2]
    assert {way: wire.seconds for way, wire in stages.wires.items()} == {(0, 1): 18, (1, 0): 18}


def test_a_residual_connection_over_two_stages_has_the_others_wait_for_each_other():
    # The first of four stages sends its third microbatch when the last one, which needs all of
    # them, waits until the first one takes the gradient of the first. Four processes of PyTorch
    # 2.13 did wait, until `gloo` gave up.
    wires = dict.fromkeys([(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)], Wire(1.0, 0.0, 0.0))
    stages = Stages(np.arange(4), np.ones((4, 8, 2)), np.zeros(4), wires)
    assert run_stages(stages, "1f1b").seconds < np.inf
    over = dict.fromkeys([(0, 3), (3, 0)], Wire(1.0, 0.0, 0.0))
    stages = Stages(np.arange(4), np.ones((4, 8, 2)), np.zeros(4), wires | over)
    assert run_stages(stages, "1f1b").seconds == np.inf
    assert run_stages(stages, "gpipe").seconds < np.inf


def two_stages(parts, forward, backward, wire=0.0, device=(0, 1)):
    seconds = np.stack([np.tile(each, (parts, 1)) for each in zip(backward, forward, strict=True)])
    wires = {way: Wire(wire, 0.0, 0.0) for way in ((0, 1), (1, 0))}
    return Stages(np.array(device), seconds.astype(float), np.zeros(len(seconds)), wires)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_equal_stages_by_hand(schedule, parts):
    # The second one waits for 1 s, and its last gradient keeps the first one busy for 2 s.
    found = run_stages(two_stages(parts, (1, 1), (2, 2)), schedule)
    assert found.seconds == 3 * parts + 3
    assert found.bubble == pytest.approx(3 / (3 * parts + 3))


def test_a_process_that_waits_begins_nothing_else():
    # GPipe: 4 times 3 s forward, the last 1 s in the second stage, 4 times 1 s back, then 3 s for
    # each but for 3 s of the second stage's, while it waits. A device that took what is ready
    # would have been back at the first gradient while it waited for activations.
    gpipe = run_stages(two_stages(4, (3, 1), (3, 1)), "gpipe")
    assert gpipe.seconds == 4 * 3 + 1 + 1 + 4 * 3
    # One forward, one backward: the second stage is back at the first gradient after 3 + 1 + 1 s.
    assert run_stages(two_stages(4, (3, 1), (3, 1)), "1f1b").seconds == 4 * (3 + 3) + 2 - 2


def test_both_ends_of_a_transfer_have_to_be_there():
    # A transfer of 1 s: in the steady state of 1F1B both processes exchange, then compute, in turn.
    found = run_stages(two_stages(2, (2, 2), (2, 2), wire=1.0), "1f1b")
    # 0 to 2 forward, sent by 3; second stage 3 to 5, 5 to 7, then exchange until 8 (first stage has
    # made its second forward pass by 4 and waits), 8 to 10, 10 to 12, sent by 13; 13 to 15.
    assert found.seconds == 15.0


def test_what_goes_on_beside_costs_the_sender_only_what_sending_costs():
    stages = two_stages(2, (2, 2), (2, 2))
    stages = Stages(stages.device, stages.seconds, stages.update, {
        (0, 1): Wire(5.0, 0.5, 0.25), (1, 0): Wire(1.0, 0.0, 0.0),
    })  # fmt: skip
    # GPipe: sent at 2 and, after 0.5 s of sending and 2 s of the next pass, at 4.5. The second
    # stage has the first one at 7, is there for the other at 9, has it at 14, and is back at 18 and
    # 20; the first stage has gradients at 19 and, as it is there for the other at 21, at 22.
    assert run_stages(stages, "gpipe").seconds == 22 + 2
