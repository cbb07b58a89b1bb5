"""Seconds of each op of a module's training step, by running them on a device."""

import contextlib
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
        passes: (num_passes, 2) seconds of a microbatch forward and backward as PyTorch runs it, and
            of its ops one after the other.
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
    traced: Traced, device: str, threads: int = 1, others: int = 0, passes: int | None = None
) -> OpTimes:
    """Runs a module's step on a device, op by op and as a whole, in turn.

    Every op of the captured graph runs with the module's own weights and inputs, in order. On the
    CPU each is timed by the clock; on a GPU its kernels are, by `torch.profiler`. The step as
    PyTorch runs it takes longer than its ops together: on a GPU that is what starting each op
    costs; on the CPU all are taken to be slower by the same factor. An optimizer's step, and the
    adding up of gradients, are timed as wholes, and are each parameter's by its bytes.

    Processes that share a CPU slow each other down, as they share its memory. In a pipeline all of
    them compute: ops are timed while others do the same.

    Args:
        traced: the step.
        device: as PyTorch calls it.
        threads: of the CPU, in each process.
        others: how many other processes train the module meanwhile.
        passes: how many count, by default `PASSES`; medians are taken.

    Raises:
        PlacetoError: the user's code raises something, or there is not enough memory.
    """
    passes = PASSES if passes is None else passes
    with running(traced.source), _threads(threads):
        torch.manual_seed(0)
        where, options = traced.source.text, traced.options
        call = real_call(traced.make, options["inputs"], traced.call.microbatches, where)
        step = _Step(traced, call, torch.device(device))
        step_seconds = step.whole(passes)
        quiet = float(np.median([step.backward() for _ in range(passes)])) if others else 0.0
        with _others(traced, threads, others):
            both = [(step.backward(), step.each()) for _ in range(WARM_UP + passes)][WARM_UP:]
            update, adding = step.optimizer(passes), step.adding(passes)
    turns = np.array([[whole, sum(each.values())] for whole, each in both])
    longer = float(np.median(turns[:, 0] / turns[:, 1]))
    on_gpu = step.device.type != "cpu" and longer > 1
    seconds, missing = _op_seconds(traced, [each for _, each in both], step.interpreter.missing)
    overhead = 0.0
    if on_gpu:
        overhead = float(np.median(turns[:, 0] - turns[:, 1])) / np.count_nonzero(seconds)
    else:
        # Medians leave out what slows down now one op and now another.
        seconds *= float(np.median(turns[:, 0])) / seconds[~missing].sum()
    ops = traced.listed.ops
    updated = np.array([op.moved_bytes * (op.phase == UPDATE) for op in ops])
    summed = np.array([float(op.param_bytes * (op.phase == PARAMETER)) for op in ops])
    alone = quiet / float(np.median(turns[:, 0])) if others else 1.0
    seconds += _parted(update, updated)
    adding_each = _parted(adding, summed)
    return OpTimes(seconds, ~missing, adding_each, overhead, turns, step_seconds, alone)


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


def keep_busy(source: Source, threads: int, begun: Callable[[], None]) -> None:
    """Trains the module of a source on the CPU, for good.

    Args:
        source: of the module.
        threads: how many.
        begun: called before the second microbatch.
    """
    traced = trace_module(source, lambda line: None)
    with running(source), _threads(threads):
        count = traced.call.microbatches
        call = real_call(traced.make, traced.options["inputs"], count, source.text)
        step = _Step(traced, call, torch.device("cpu"))
        step.backward()
        begun()
        while True:
            step.backward()


@contextlib.contextmanager
def _others(traced: Traced, threads: int, count: int) -> Iterator[None]:
    """A context in which so many other processes train the same module on the CPU."""
    settings = {"source": traced.source.text, "threads": threads}
    children = [
        Child("a process that computes meanwhile", "placeto.measurement.pytorch.busy", settings)
        for _ in range(count)
    ]
    try:
        for child in children:
            answer = child.receive(_PATIENCE_SECONDS)
            if "error" in answer:
                raise PlacetoError(answer["error"])
        yield
    except ChildError as error:
        raise PlacetoError(f"{traced.source.text}: {error}") from error
    finally:
        for child in children:
            child.close()


def _parted(seconds: float, sizes: Floats) -> Floats:
    """(n,) what each of some sizes has of a time."""
    return seconds * sizes / max(float(sizes.sum()), 1.0)


class _Step:
    """A module's step on a device, with data."""

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

    def backward(self) -> float:
        """Seconds of a microbatch, forward and backward, as PyTorch runs it."""
        self.module.zero_grad(set_to_none=True)
        return self._seconds(self._microbatch)

    def each(self) -> dict[str, float]:
        """Seconds of each op, by the name of its node."""
        self.module.zero_grad(set_to_none=True)
        with torch.no_grad():
            return self.interpreter.timed(list(self._values()))

    def optimizer(self, passes: int) -> float:
        """Seconds of the optimizer's step."""
        if not self.training:
            return 0.0
        self.backward()
        optimizer = self._optimizer()
        return float(np.median([self._seconds(optimizer.step) for _ in range(passes + 1)][1:]))

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

    def whole(self, passes: int) -> float:
        """Seconds of a step of all microbatches with the optimizer, as PyTorch runs it."""
        optimizer = self._optimizer() if self.training else None

        def run() -> None:
            for _ in range(self.traced.call.microbatches):
                self._microbatch()
            if optimizer is not None:
                optimizer.step()

        found = []
        for _ in range(max(passes // 2, 1) + 1):
            self.module.zero_grad(set_to_none=True)
            found.append(self._seconds(run))
        return float(np.median(found[1:]))

    def _optimizer(self) -> torch.optim.Optimizer:
        return OPTIMIZERS[self.traced.options["optimizer"]](self.parameters)

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
