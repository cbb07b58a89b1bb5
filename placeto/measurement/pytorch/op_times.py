"""Seconds of each op of a module's training step, by running them on a device."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from placeto.extraction.pytorch.capture import BUFFER, PARAMETER, loss_targets, total_loss
from placeto.extraction.pytorch.inputs import Call, real_call
from placeto.extraction.pytorch.ops import UPDATE
from placeto.extraction.pytorch.source import Traced, trace_module
from placeto.extraction.source import Source
from placeto.extraction.user_code import running
from placeto.measurement.child import Child, ChildError
from placeto.measurement.pytorch.interpret import TimedInterpreter
from placeto.support.arrays import Bools, Floats
from placeto.support.errors import PlacetoError

WARM_UP, PASSES = 2, 7
_PATIENCE_SECONDS = 300.0
# As `placeto extract` knows them; what an optimizer's step takes does not depend on the rate.
OPTIMIZERS: dict[str, Callable[[Sequence[Tensor]], torch.optim.Optimizer]] = {
    "sgd": lambda tensors: torch.optim.SGD(tensors, lr=1e-6),
    "momentum": lambda tensors: torch.optim.SGD(tensors, lr=1e-6, momentum=0.9),
    "rmsprop": lambda tensors: torch.optim.RMSprop(tensors, lr=1e-6),
    "adam": lambda tensors: torch.optim.Adam(tensors, lr=1e-6),
}


@dataclass(frozen=True, eq=False)
class OpTimes:
    """What the ops of one microbatch's step take on a device, and the step that they make up.

    Attributes:
        seconds: (num_ops,) of each traced op; 0 of what is none, such as a parameter.
        measured: (num_ops,) whether it ran; what a device has no kernel for takes as long by its
            bytes as the others do.
        adding: (num_ops,) of a parameter, seconds to add a microbatch's gradient to the sum so far.
        op_overhead: seconds that each op takes besides.
        passes: (num_passes, 2) seconds of a microbatch forward and backward as PyTorch runs it, in
            the mean of a round, and of its ops one after the other.
        step_seconds: of a whole step, all microbatches and the optimizer, as PyTorch runs it while
            no other process computes.
        alone: by what factor a microbatch is faster then than beside the others.
    """

    seconds: Floats
    measured: Bools
    adding: Floats
    op_overhead: float
    passes: Floats
    step_seconds: float
    alone: float = 1.0


def time_ops(
    traced: Sequence[Traced],
    device: str,
    threads: int = 1,
    others: int = 0,
    passes: int | None = None,
) -> list[OpTimes]:
    """Runs modules' steps on a device, op by op and as a whole, in turn.

    Every op of a captured graph runs with the module's own weights and inputs, in order. On the
    CPU each is timed by the clock; on a GPU its kernels are, by `torch.profiler`. The step as
    PyTorch runs it takes longer than its ops together: on a GPU that is what starting each op
    costs; on the CPU all are taken to be slower by the same factor. An optimizer's step, and the
    adding up of gradients, are timed as wholes, and are each parameter's by its bytes.

    Processes that share a CPU slow each other down, as they share its memory. In a pipeline all of
    them compute: ops are timed while others do the same. As a machine is not as fast at one time as
    at another, all steps have passes in each of several rounds, and as many while the others rest.
    Of an op the median counts, of all together the mean of passes, which is what a step adds up.

    Args:
        traced: the steps; all of their modules are in the device's memory at once.
        device: as PyTorch calls it.
        threads: of the CPU, in each process.
        others: how many other processes train the first module meanwhile.
        passes: how many rounds count, by default `PASSES`.

    Raises:
        PlacetoError: the user's code raises something, or there is not enough memory.
    """
    passes = PASSES if passes is None else passes
    with _threads(threads):
        torch.manual_seed(0)
        steps = [_Step.of(each, torch.device(device)) for each in traced]
        with _others(traced[0], threads, others) as beside:
            for number in range(WARM_UP + passes):
                for step in steps:
                    step.take_turn(number, beside)
            beside.go_on()
            return [step.times(passes, others > 0) for step in steps]


def _op_seconds(
    traced: Traced, passes: Sequence[Mapping[str, float]], missing: Set[str]
) -> tuple[Floats, Bools]:
    """(num_ops,) medians over passes, by the names of nodes, and which ops did not run."""
    names = [node.name if node is not None else "" for node in traced.listed.nodes]
    seconds = np.median([[each.get(name, 0.0) for name in names] for each in passes], axis=0)
    moved = np.array([op.moved_bytes for op in traced.listed.ops])
    left_out = np.array([name in missing for name in names])
    ran = (seconds > 0) & (moved > 0)
    if left_out.any() and ran.any():
        seconds[left_out] = moved[left_out] * (seconds[ran].sum() / moved[ran].sum())
    return seconds, left_out


def keep_busy(source: Source, threads: int, before: Callable[[int], None]) -> None:
    """Trains the module of a source on the CPU, for good.

    Args:
        source: of the module.
        threads: how many.
        before: called before each microbatch, with its number from 0.
    """
    traced = trace_module(source, lambda line: None)
    with _threads(threads):
        step = _Step.of(traced, torch.device("cpu"))
        with running(source):
            for number in itertools.count():
                before(number)
                step.backward()


class _Others:
    """Other processes that train a module on the CPU; at first they rest."""

    def __init__(self, children: Sequence[Child]) -> None:
        self.children = children
        self._hear()

    def go_on(self) -> None:
        """Has them compute."""
        for child in self.children:
            child.send({})

    def rest(self) -> None:
        """Waits until none of them computes."""
        self.go_on()  # whoever computes takes the next message for a wish to rest
        self._hear()

    def _hear(self) -> None:
        for child in self.children:
            answer = child.receive(_PATIENCE_SECONDS)
            if "error" in answer:
                raise PlacetoError(answer["error"])


@contextlib.contextmanager
def _others(traced: Traced, threads: int, count: int) -> Iterator[_Others]:
    """A context in which there are so many other processes that train the same module."""
    settings = {"source": traced.source.text, "threads": threads}
    children = [
        Child("a process that computes meanwhile", "placeto.measurement.pytorch.busy", settings)
        for _ in range(count)
    ]
    try:
        yield _Others(children)
    except ChildError as error:
        raise PlacetoError(f"{traced.source.text}: {error}") from error
    finally:
        for child in children:
            child.close()


def _trimmed_mean(samples: Sequence[Sequence[float]]) -> float:
    """The mean but for a tenth at either end: an interruption is no part of what a pass takes."""
    every = np.sort(np.ravel(samples))
    cut = -(-len(every) // 10) if len(every) > 2 else 0
    return float(every[cut : len(every) - cut].mean())


def _parted(seconds: float, sizes: Floats) -> Floats:
    """(n,) what each of some sizes has of a time."""
    return seconds * sizes / max(float(sizes.sum()), 1.0)


class _Step:
    """A module's step on a device, with data."""

    @classmethod
    def of(cls, traced: Traced, device: torch.device) -> "_Step":
        """The step of a module that is made anew."""
        where, options = traced.source.text, traced.options
        with running(traced.source):
            call = real_call(traced.make, options["inputs"], traced.call.microbatches, where)
            return cls(traced, call, device)

    def __init__(self, traced: Traced, call: Call, device: torch.device) -> None:
        self.traced, self.device = traced, device
        self.training = traced.captured.loss is not None
        self.module = call.module.to(device).train(self.training)
        self.args, self.kwargs = torch.utils._pytree.tree_map_only(
            Tensor, lambda tensor: tensor.to(device), (call.args, call.kwargs)
        )
        self.targets: list[Tensor | None] = []
        if self.training:
            outputs = self.module(*self.args, **self.kwargs)
            self.targets = loss_targets(outputs, traced.options["loss"], traced.source.text)
        self.parameters = [each for each in self.module.parameters() if each.requires_grad]
        self.interpreter = TimedInterpreter(traced.captured.graph, device)
        self.optimizer = None
        if self.training:
            self.optimizer = OPTIMIZERS[traced.options["optimizer"]](self.parameters)
        # Of each round that counts: a microbatch alone and beside others, and its ops; whole steps.
        self.alone: list[list[float]] = []
        self.beside: list[list[float]] = []
        self.ops: list[dict[str, float]] = []
        self.steps: list[float] = []

    def take_turn(self, number: int, beside: _Others) -> None:
        """Passes of a round: alone, beside others that compute, and op by op."""
        repeats = max(self.traced.call.microbatches // 2, 1)  # a step has as many, which add up
        with running(self.traced.source):
            self.backward()  # what ran before had the caches
            alone = [self.backward() for _ in range(repeats)]
            if number % 2:
                self.steps.append(self.whole())
            beside.go_on()
            found = [self.backward() for _ in range(repeats)], self.each()
            beside.rest()
        if number >= WARM_UP:
            self.alone.append(alone)
            self.beside.append(found[0])
            self.ops.append(found[1])

    def times(self, passes: int, others: bool) -> OpTimes:
        """What the rounds come to, with others that compute or without."""
        with running(self.traced.source):
            update, adding = self.updating(passes), self.adding(passes)
        sums = [sum(each.values()) for each in self.ops]
        turns = np.stack([np.mean(self.beside, axis=1), sums], axis=1)
        longer = float(np.median(turns[:, 0] / turns[:, 1]))
        on_gpu = self.device.type != "cpu" and longer > 1
        seconds, missing = _op_seconds(self.traced, self.ops, self.interpreter.missing)
        overhead = 0.0
        if on_gpu:
            overhead = float(np.median(turns[:, 0] - turns[:, 1])) / np.count_nonzero(seconds)
        else:
            # Medians leave out what slows down now one op and now another; a step has all of it.
            seconds *= _trimmed_mean(self.beside) / seconds[~missing].sum()
        ops = self.traced.listed.ops
        updated = np.array([op.moved_bytes * (op.phase == UPDATE) for op in ops])
        summed = np.array([float(op.param_bytes * (op.phase == PARAMETER)) for op in ops])
        seconds += _parted(update, updated)
        step = float(np.median(self.steps[1:] or self.steps))
        alone = 1.0
        if others:  # which make nothing faster; what is above 1 is the machine's
            alone = min(_trimmed_mean(self.alone) / _trimmed_mean(self.beside), 1.0)
        return OpTimes(seconds, ~missing, _parted(adding, summed), overhead, turns, step, alone)

    def backward(self) -> float:
        """Seconds of a microbatch, forward and backward, as PyTorch runs it."""
        self.module.zero_grad(set_to_none=True)
        return self._seconds(self._microbatch)

    def each(self) -> dict[str, float]:
        """Seconds of each op, by the name of its node."""
        self.module.zero_grad(set_to_none=True)
        with torch.no_grad():
            return self.interpreter.timed(list(self._values()))

    def updating(self, passes: int) -> float:
        """Seconds of the optimizer's step."""
        if self.optimizer is None:
            return 0.0
        self.backward()
        found = [self._seconds(self.optimizer.step) for _ in range(passes + 1)]
        return float(np.median(found[1:]))

    def adding(self, passes: int) -> float:
        """Seconds to add a microbatch's gradients to those so far; 0 for one microbatch."""
        if not self.training or self.traced.call.microbatches == 1:
            return 0.0
        self.backward()
        sums = [each.grad for each in self.parameters if each.grad is not None]
        gradients = [each.clone() for each in sums]

        def add() -> None:
            for total, gradient in zip(sums, gradients, strict=True):
                total.add_(gradient)

        return float(np.median([self._seconds(add) for _ in range(passes + 1)][1:]))

    def whole(self) -> float:
        """Seconds of a step of all microbatches with the optimizer, as PyTorch runs it."""

        def run() -> None:
            for _ in range(self.traced.call.microbatches):
                self._microbatch()
            if self.optimizer is not None:
                self.optimizer.step()

        self.module.zero_grad(set_to_none=True)
        return self._seconds(run)

    def _microbatch(self) -> None:
        with torch.set_grad_enabled(self.training):
            outputs = self.module(*self.args, **self.kwargs)
            if self.training:
                loss = total_loss(outputs, self.targets) / self.traced.call.microbatches
                loss.backward()  # type: ignore[no-untyped-call]

    def _values(self) -> Iterator[Tensor]:
        """What the placeholders are filled with."""
        captured = self.traced.captured
        state: dict[str, Tensor] = dict(self.module.named_parameters(remove_duplicate=False))
        state |= dict(self.module.named_buffers(remove_duplicate=False))
        given = torch.utils._pytree.tree_leaves((self.args, self.kwargs, self.targets))
        tensors = [each for each in given if isinstance(each, Tensor)]
        placeholders = [node for node in captured.graph.nodes if node.op == "placeholder"]
        for number, node in enumerate(placeholders):
            kind, name = captured.sources[number] if number < len(captured.sources) else ("", "")
            place = number - captured.first_given
            if kind in (PARAMETER, BUFFER):
                yield state[name].detach()
            elif 0 <= place < len(tensors):
                yield tensors[place].detach()
            else:  # a constant, or the gradient of the loss
                like = node.meta["val"]
                yield torch.ones(tuple(like.shape), dtype=like.dtype, device=self.device)

    def _seconds(self, run: Callable[[], Any]) -> float:
        self._wait()
        began = time.perf_counter()
        run()
        self._wait()
        return time.perf_counter() - began

    def _wait(self) -> None:
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    """A context in which PyTorch computes on so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
